"""Checks of this machine: Java, the jars, memory, the time zone."""

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
from distributary.preflight.check_result import CheckPassed, CheckWarning

_JVM_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "_JAVA_OPTIONS")
_OTHER_ZONE = re.compile(r"-Duser\.timezone=(?!UTC\b|GMT\b)(\S+)", re.IGNORECASE)


def java_is_there() -> CheckPassed:
    """Raises SetupError if Java is missing or too old."""
    return CheckPassed(f"{java()}, new enough")


def jars_are_there() -> CheckPassed | CheckWarning:
    """Warns if the first start has to fetch jars."""
    named = os.environ.get(DIRECTORY_VARIABLE)
    bundle = declared()
    directory = Path(named).absolute() if named else cache_directory() / bundle.key
    if bundle.is_in(directory):
        return CheckPassed(f"all in {directory}")
    return CheckWarning(
        "jars-not-fetched",
        f"{directory} does not have all jars yet: the first start fetches them, which needs a Maven repository",
        "python -m distributary.launch.jars fetches them now",
    )


def memory_suffices(properties: Mapping[str, str]) -> CheckPassed | CheckWarning:
    """Raises SetupError if Spark's driver would get more memory than this machine has."""
    total, free = machine_memory()
    wanted = spark_bytes(properties.get("spark.driver.memory", default_heap(total)))
    if wanted is None or total is None or free is None:
        return CheckWarning(
            "memory-unknown",
            "the size of this machine's memory can't be read",
            "check by hand that spark.driver.memory fits into it",
        )
    text = f"spark.driver.memory is {_in_gib(wanted)}; {_in_gib(free)} of {_in_gib(total)} are free"
    fix = "lower spark.driver.memory in the config, or give this machine or container more"
    if wanted > total:
        raise SetupError("memory-short", text, fix)
    if wanted > free:
        return CheckWarning("memory-tight", text, fix)
    return CheckPassed(text)


def _in_gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def time_zone_is_utc() -> CheckPassed | CheckWarning:
    """Warns if one of Java's environment variables sets another zone. The service itself always sets UTC."""
    for variable in _JVM_VARIABLES:
        if match := _OTHER_ZONE.search(os.environ.get(variable, "")):
            return CheckWarning(
                "time-zone",
                f"{variable} sets user.timezone to {match[1]}: a JVM that something else starts, such as spark-submit,"
                " keeps it",
                f"remove -Duser.timezone from {variable}, or set it to UTC",
            )
    return CheckPassed(f"the service runs in UTC, whatever this machine's time zone is ({time.tzname[0]})")
