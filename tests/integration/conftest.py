"""A separate topic and table for each test, on either of the two Kafkas."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.memory_kafka import drop_address, new_address
from tests.support.spark import Bench, new_bench


@pytest.fixture
def memory_kafka() -> Iterator[str]:
    """The address of an empty Kafka in this process's memory."""
    address = new_address()
    yield address
    drop_address(address)


@pytest.fixture
def make_bench(session: SparkSession, memory_kafka: str, tmp_path: Path) -> Callable[..., Bench]:
    """Makes benches whose records stay in this process's memory; it takes what new_bench() takes behind the folder."""
    return partial(new_bench, session, memory_kafka, tmp_path)


@dataclass(frozen=True)
class BenchSettings:
    """What a file or a test has its `bench` be, by `pytest.mark.bench(...)`: the nearest one counts, as a whole."""

    on_kafka: bool = False
    """Whether the records go to a real Kafka, as in `kafka_bench`, and do not stay in this process's memory."""
    partitions: int = 0
    """With how many the topic is created; 0: the test creates it."""
    rule: Mapping[str, Any] = field(default_factory=dict)
    """The table's settings."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the whole config."""


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Bench:
    """A topic and its table, by the mark `bench`: see BenchSettings."""
    mark = request.node.get_closest_marker("bench")
    settings = BenchSettings(**mark.kwargs) if mark else BenchSettings()
    made: Bench = request.getfixturevalue("kafka_bench" if settings.on_kafka else "memory_bench")
    made.rule, made.options = settings.rule, settings.options
    return made.create(settings.partitions) if settings.partitions else made


@pytest.fixture
def memory_bench(make_bench: Callable[..., Bench]) -> Bench:
    """A topic, which is not created yet, and its table; the records stay in this process's memory."""
    return make_bench()


@pytest.fixture
def kafka_bench(session: SparkSession, kafka: str, tmp_path: Path) -> Bench:
    """The same on a real Kafka: for tests of topics and offsets, of what Kafka's clients meet, and of what connects to
    Kafka by itself, as commands do."""
    return new_bench(session, kafka, tmp_path)


@pytest.fixture
def signal_handlers() -> Iterator[None]:
    """The service listens for signals: afterwards they do again what they did before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
