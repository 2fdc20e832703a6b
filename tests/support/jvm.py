"""How the JVMs of tests start and compile.

Quick to start by default (see tests/conftest.py), which is also right for the Spark that all tests of a process share,
as long as two processes have two cores: with all tiers, its compiler's threads take from the other process what they
save in this one (90 s against 135 s for six files of tests).

A JVM that starts a session, makes a Delta table and merges into it takes 27 s with an archive of Spark's classes (class
data sharing) and 37 s without (A B A B, 2 cores, other work beside). tests/support/class_archive.py writes the archive
into the cache directory, once for each Java and PySpark; JVMs that it does not fit ignore it.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

from distributary.launch.bundle import cache_directory
from distributary.launch.java import SHORT_LIVED, java

_ALL_TIERS = "-XX:ReservedCodeCacheSize=256m"
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""A JVM that is not Spark's, or that can't use the archive, would print a notice on its standard output."""


def class_archive() -> Path:
    """The path of the archive of Spark's classes."""
    made_by = f"{Path(java()).resolve()} {version('pyspark')}"
    return cache_directory() / f"spark-classes-{hashlib.sha256(made_by.encode()).hexdigest()[:12]}.jsa"


def _with_archive(options: str) -> str:
    archive = class_archive()
    return f"{options} -XX:SharedArchiveFile={archive} {QUIET}" if archive.exists() else options


def short_lived() -> str:
    """The options of a JVM that lives for some minutes."""
    return _with_archive(SHORT_LIVED)


LONG_LIVED = {"JAVA_TOOL_OPTIONS": _with_archive(_ALL_TIERS)}
"""The environment of a JVM that does the same again and again for more than some five minutes: all tiers. For a run of
half a minute they take a third more of the processors' time (tests/integration/test_recorded_avro.py: 60 s, not 45)."""
