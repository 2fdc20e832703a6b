"""Reads the memory, garbage collections and threads of Spark's JVM."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from distributary.launch.classes import java_class

_FACTORY = "java.lang.management.ManagementFactory"


@dataclass(frozen=True)
class JvmState:
    """The driver's JVM at one moment: bytes of its heap that are used and that it may have at most, seconds that it has
    spent in collections since its start, and its threads."""

    heap_used: int
    heap_max: int
    collection_seconds: float
    threads: int


def jvm_state(session: SparkSession) -> JvmState:
    """Reads the JVM's state. Raises what py4j raises."""
    beans = java_class(session, _FACTORY)
    heap = beans.getMemoryMXBean().getHeapMemoryUsage()
    collectors = beans.getGarbageCollectorMXBeans()
    return JvmState(
        heap_used=int(heap.getUsed()),
        heap_max=int(heap.getMax()),
        collection_seconds=sum(max(0, int(collector.getCollectionTime())) for collector in collectors) / 1000,
        threads=int(beans.getThreadMXBean().getThreadCount()),
    )


def jvm_pid(session: SparkSession) -> int | None:
    """The process of the JVM, where this process has started it."""
    process = getattr(session.sparkContext._gateway, "proc", None)
    return None if process is None else int(process.pid)
