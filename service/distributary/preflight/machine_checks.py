"""Whether this machine has what the service runs on: Java, the jars, memory, its time."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from distributary.errors import SetupError
from distributary.launch.bundle import cache_directory
from distributary.launch.jars import DIRECTORY_VARIABLE, declared
from distributary.launch.java import java
from distributary.launch.memory import default_heap, machine_memory, spark_bytes
from distributary.preflight.check_result import Doubtful, Healthy

_JVM_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "_JAVA_OPTIONS")
_OTHER_ZONE = re.compile(r"-Duser\.timezone=(?!UTC\b|GMT\b)(\S+)", re.IGNORECASE)


def java_is_there() -> Healthy:
    """Raises SetupError where Java is missing or too old."""
    return Healthy(f"{java()}, new enough")


def jars_are_there() -> Healthy | Doubtful:
    """The jars are in their directory, or will have to be fetched."""
    named = os.environ.get(DIRECTORY_VARIABLE)
    bundle = declared()
    directory = Path(named).absolute() if named else cache_directory() / bundle.key
    if bundle.is_in(directory):
        return Healthy(f"all in {directory}")
    return Doubtful(
        "jars-not-fetched",
        f"{directory} does not have all jars yet: the first start fetches them, which needs a Maven repository",
        "python -m distributary.launch.jars fetches them now",
    )


def memory_suffices(properties: Mapping[str, str]) -> Healthy | Doubtful:
    """Raises SetupError where Spark's driver is to have more than this machine has."""
    total, free = machine_memory()
    wanted = spark_bytes(properties.get("spark.driver.memory", default_heap(total)))
    if wanted is None or total is None or free is None:
        return Doubtful("memory-unknown", "how much memory there is can't be told here", "see to it by hand")
    said = f"spark.driver.memory is {_in_gib(wanted)}, of {_in_gib(total)} memory {_in_gib(free)} are free"
    fix = "lower spark.driver.memory in the config, or give this machine or container more"
    if wanted > total:
        raise SetupError("memory-short", said, fix)
    if wanted > free:
        return Doubtful("memory-tight", said, fix)
    return Healthy(said)


def _in_gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def time_zone_is_utc() -> Healthy | Doubtful:
    """The service sets UTC for itself; only Java's own variables may say something else."""
    for variable in _JVM_VARIABLES:
        if found := _OTHER_ZONE.search(os.environ.get(variable, "")):
            return Doubtful(
                "time-zone",
                f"{variable} sets user.timezone to {found[1]}: a JVM that is started elsewhere, as by spark-submit,"
                " keeps it",
                f"take -Duser.timezone out of {variable}, or set it to UTC",
            )
    return Healthy(f"the service runs in UTC, whatever this machine's time zone is ({time.tzname[0]})")
