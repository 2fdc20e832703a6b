"""How the JVMs of tests compile: quick to start by default (see tests/conftest.py), which long ones pay for."""

from __future__ import annotations

LONG_LIVED = {"JAVA_TOOL_OPTIONS": "-XX:ReservedCodeCacheSize=256m"}
"""The environment of a JVM that works for more than some five minutes: all tiers of compilation."""
