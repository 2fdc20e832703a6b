"""The Java that Spark will run on: JAVA_HOME's where that is set, else the one on PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from distributary.errors import SetupError

# Spark 4 and Kafka 4 both refuse anything older.
OLDEST = 17
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
"""Options of a JVM that lives for some minutes: it would spend half of its time on compiling code that does not run
often enough to pay off, so only the first tier compiles. With that the room for compiled code is 48 MB by default:
Spark fills it within a minute, and then nothing is compiled any more."""
_FIX = f"install Java {OLDEST} or newer (Debian and Ubuntu: openjdk-{OLDEST}-jre-headless), or set JAVA_HOME to one"


def java() -> str:
    """The `java` command, known to be new enough. Raises SetupError `java-missing` or `java-too-old`."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else "java"
    path = shutil.which(command)
    if path is None:
        raise SetupError("java-missing", f"there is no {command}" + ("" if home else " on PATH"), _FIX)
    try:
        version = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise SetupError("java-missing", f"{path} does not run: {error}", _FIX) from error
    major = major_version(version.stderr + version.stdout)
    if major is None:
        raise SetupError("java-missing", f"{path} -version prints no version", _FIX)
    if major < OLDEST:
        raise SetupError("java-too-old", f"{path} is Java {major}; Java {OLDEST} or newer is needed", _FIX)
    return path


def major_version(output: str) -> int | None:
    """17 from the output of `java -version`; 8 from the older spelling 1.8.0; None if no version is in it."""
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else None
