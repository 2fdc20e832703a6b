"""How the JVMs of tests compile: quick to start by default (see tests/conftest.py), which is also right for the Spark
that all tests of a process share, as long as two processes have two cores: with all tiers, its compiler's threads take
from the other process what they save in this one (90 s against 135 s for six files of tests)."""

from __future__ import annotations

LONG_LIVED = {"JAVA_TOOL_OPTIONS": "-XX:ReservedCodeCacheSize=256m"}
"""The environment of a JVM that does the same again and again for more than some five minutes: all tiers."""
