"""The Spark session of the service, with the settings that the service needs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from distributary import logs
from distributary.config import secrets
from distributary.errors import SetupError
from distributary.launch.classes import java_class
from distributary.launch.conditional_commits import make_s3_commits_conditional
from distributary.launch.cores import bounded_master, granted_cores, limit_threads
from distributary.launch.jars import jars
from distributary.launch.local_files import open_files_by_java
from distributary.launch.memory import default_heap, machine_memory, spark_bytes, too_tight
from distributary.launch.network import LOOPBACK, is_local, network_settings
from distributary.launch.small_commits import ANY_LOG_STORE, LOCAL_LOG_STORE, SMALL_COMMITS

# Settings that the rules of the tables rest on; the config refuses them.
_OWNED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Outside UTC Delta checks its checksum by reading the whole state at every commit, and dates would depend on the
    # machine.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    # Every cast that may fail is a try_cast; a failing one outside must not end the batch of a table.
    "spark.sql.ansi.enabled": "false",
    # Else `${env:NAME}` in a column's name, or in a schema, would be the value of that variable.
    "spark.sql.variable.substitute": "false",
    # INT96, Spark's default, is read as nanoseconds by most readers, and years before 1678 or after 2262 overflow.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
# Settings that suit small commits on few cores; the config may override them.
_DEFAULTS = {
    "spark.master": "local[*]",
    "spark.app.name": "distributary",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    **SMALL_COMMITS,
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.scheduler.mode": "FAIR",
    # For each checkpoint of verify's comparison Spark rewrites all that it infers of the columns, which for a table of
    # some columns takes longer than the work itself.
    "spark.sql.constraintPropagation.enabled": "false",
    # For error messages, PySpark sends Java the line of Python of each step of a query: half of all calls to Java while
    # a table's queries are built.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # By default a job fails whose tasks return more than 1 GB, as those on executors may. The bytes of a batch are
    # limited by the heap's size.
    "spark.driver.maxResultSize": "0",
    # Every execution describes its plan for the UI, in text that is long for a table of some columns.
    "spark.sql.ui.explainMode": "simple",
    # By default a thousand past executions with their plans are kept, for a UI that is off.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    # Spark keeps what read a partition for a next batch, with all that was fetched too much, up to 64 MB each, for five
    # minutes. A batch's readers are never used again.
    "spark.kafka.consumer.cache.capacity": "1",
    "spark.kafka.consumer.cache.timeout": "10s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "10s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "10s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "10s",
    # Spark's own, and the names that the config takes for secrets: keys of Azure's storage are not among Spark's.
    "spark.redaction.regex": f"{secrets.PATTERN}|{secrets.CREDENTIALS}|secret|password|token|access[.]?key",
    # The salt of masked columns (see decode/masks.py) stands in plans, as two blocks of 64 bytes.
    "spark.sql.redaction.string.regex": "(?i)[0-9a-f]{128}",
    "spark.sql.maxPlanStringLength": "500",
    "spark.sql.debug.maxToStringFields": "5",
}
_DRIVER_OPTIONS, _EXECUTOR_OPTIONS = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
_JVM_UTC = "-Duser.timezone=UTC"
# By default HotSpot leaves methods of more than 8,000 bytes interpreted for ever. Those that Spark generates for tables
# of some columns (OPTIMIZE, verify) are larger.
_COMPILE_ALL = "-XX:-DontCompileHugeMethods"
# If one of Spark's own threads runs out of memory, Spark waits for its result for ever.
_END_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"
# Java's default, G1, keeps pauses of large heaps short and pays for it with each reference that is written: a driver
# that has the data itself takes a sixth more of the processors' time with it.
_COLLECTOR = "-XX:+UseParallelGC"
_LOG_CONFIG = "log4j2.configurationFile"
_PROCESSORS = "-XX:ActiveProcessorCount"
_NAMES_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_JAVA_READS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
JVM_OPTIONS = f"{_JVM_UTC} {_COMPILE_ALL} {_END_WITHOUT_MEMORY} -Dlog4j2.level=warn"
"""Options of driver and executors, added to those of the config."""
_log = logs.get_logger(__name__)
_OUT_OF_MEMORY = (3, 52)  # exit codes: Java's own with that option, and Spark's where a task used the memory up
_ENDING = 20.0  # seconds that a JVM may take to end once it does not answer any more


def open_session(properties: Mapping[str, str], system_properties: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the config's Spark properties over the defaults, in JVMs with these system properties too.

    Under spark-submit its settings override the defaults. Raises SetupError.
    """
    system_properties = system_properties or {}
    os.environ["TZ"] = "UTC"
    time.tzset()
    # Tasks decode records by this package: by default they run the driver's Python, on each machine at the same path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = "SPARK_ENV_LOADED" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
    given = _given_to_spark_submit() if submitted else {}
    defaults = {key: value for key, value in _DEFAULTS.items() if key not in given}
    if ANY_LOG_STORE in {**given, **properties}:
        defaults = {key: value for key, value in defaults.items() if key != LOCAL_LOG_STORE}
    settings = {**defaults, **properties, **_OWNED}
    if not submitted:
        settings["spark.jars"] = ",".join(str(jar) for jar in jars())
        for key in (_DRIVER_OPTIONS, _EXECUTOR_OPTIONS):
            settings[key] = f"{settings.get(key, '')} {JVM_OPTIONS}".strip()
    _fit(settings, given)
    if system_properties:
        options = settings.get(_EXECUTOR_OPTIONS) or SparkConf().get(_EXECUTOR_OPTIONS, "")
        settings[_EXECUTOR_OPTIONS] = " ".join(
            [options, *(f"-D{name}={value}" for name, value in system_properties.items())]
        ).strip()
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        if not submitted:
            _start_java(settings)
        session: SparkSession = builder.getOrCreate()
    except (Py4JError, PySparkException) as error:
        reason = str(getattr(error, "java_exception", error)).strip().splitlines()[0]
        master = settings.get("spark.master", "(given by spark-submit)")
        raise SetupError(
            "spark-not-started",
            f"Spark did not start with spark.master {master}: {reason}",
            "correct `spark` in the config; its master must answer from this machine. Java's own message is above. If a"
            " spark-defaults.conf sets a garbage collector, set the same one in spark.driver.extraJavaOptions",
        ) from error
    context: SparkContext = session.sparkContext
    context.setLogLevel("ERROR")
    for name, value in system_properties.items():  # under spark-submit the driver's JVM was there before
        java_class(session, "java.lang.System").setProperty(name, value)
    make_s3_commits_conditional(session)
    open_files_by_java(session)
    return session


def _fit(settings: dict[str, str], given: Mapping[str, str]) -> None:
    """Adds settings that depend on the machine or container, and on the master: number of tasks, memory, and the
    addresses on which Spark listens. `given` are the settings of spark-submit; with these Java already runs, and has
    its options."""
    cores = granted_cores(os.environ)
    limit_threads(cores)
    if not given:
        settings.setdefault("spark.driver.memory", default_heap(machine_memory()[0]))
        options = f"{settings[_DRIVER_OPTIONS]} {collector(settings, os.environ)}".strip()
        if _LOG_CONFIG not in options:
            file = Path(__file__).with_name(f"log4j2-{'json' if logs.is_json() else 'text'}.properties")
            options += f' "-D{_LOG_CONFIG}={file}"'
        settings[_DRIVER_OPTIONS] = options if _PROCESSORS in options else f"{options} {_PROCESSORS}={cores}"
        if is_local(settings["spark.master"]):
            os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)  # where Spark's own page listens, if it is on
    known = {**given, **settings}
    heap = spark_bytes(known.get("spark.driver.memory") or "1g") or 2**30
    total, _ = machine_memory()
    if too_tight(heap, total):
        _log.warning(
            "memory is tight: Java needs about 1 GiB beside its heap, and Python as much",
            heap_mib=heap // 2**20,
            machine_or_container_mib=(total or 0) // 2**20,
            fix="lower spark.driver.memory in the config, or give this machine or container more",
        )
    master = bounded_master(known["spark.master"], cores, heap)
    if master != known["spark.master"]:
        settings["spark.master"] = master
    for key, value in network_settings(master, known).items():
        if key not in given:
            settings.setdefault(key, value)


def _start_java(settings: Mapping[str, str]) -> None:
    """Starts the JVM, where none runs yet, without secrets: PySpark gives it its settings on the command line, which
    every user of the machine may read. The session gets all of them after it has started."""
    known = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        needed = key.startswith("spark.driver.")  # by the JVM itself, when it starts
        if needed or not (secrets.is_secret(key) or secrets.has_credentials(value)):
            known.set(key, value)
    with _without_sigterm():
        SparkContext._ensure_initialized(conf=known)


@contextmanager
def _without_sigterm() -> Iterator[None]:
    """A JVM that is started in here ignores SIGTERM: systemd and terminals send it to all processes of a service, and a
    batch is finished only with Spark. The JVM ends with this process, whose end closes its standard input."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _given_to_spark_submit() -> dict[str, str]:
    """The settings of its command line and of spark-defaults.conf, and those that it has decided in any case; these are
    empty if they are not known."""
    decided = dict.fromkeys(("spark.master", "spark.app.name", "spark.driver.memory"), "")
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return decided
    SparkContext._ensure_initialized()  # a SparkConf has Java's settings only after this
    return {**decided, **dict(SparkConf().getAll())}


def collector(settings: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The driver's option for Java's garbage collector, given Spark's settings; empty if executors do the work, or if
    the user has chosen a collector: Java does not start with two."""
    given = [settings.get(key, "") for key in (_DRIVER_OPTIONS, "spark.driver.defaultJavaOptions")]
    given += [environment.get(name, "") for name in _JAVA_READS]
    named = any(_NAMES_COLLECTOR.search(options) for options in given)
    return "" if named or not is_local(settings["spark.master"]) else _COLLECTOR


def close_session(session: SparkSession) -> None:
    """Stops Spark. Raises SetupError if its JVM has ended by itself, which is then the cause of all other errors."""
    process: subprocess.Popen[bytes] | None = getattr(session.sparkContext._gateway, "proc", None)
    try:
        if process is None or process.poll() is None:
            session.stop()
            return
    except (Py4JError, OSError) as error:
        raise _ended(process) from error
    raise _ended(process)


def refuse_stopped(session: SparkSession) -> None:
    """Raises SetupError if Spark has stopped while its JVM runs: by itself, as it does when its cluster gives the
    application up, or by somebody who ended the application there. Nothing starts it again in this process. Raises what
    py4j raises if the JVM is gone."""
    if session.sparkContext._jsc.sc().isStopped():
        raise SetupError(
            "spark-gone",
            "Spark has stopped: its cluster has ended the application",
            "start it again: each table continues from its own offsets. The log of the cluster's master says why it"
            " ended: somebody stopped it, or its executors failed too often",
        )


def _ended(process: subprocess.Popen[bytes] | None) -> SetupError:
    """The error with the JVM's exit status; under spark-submit, where the JVM is no child process, without it."""
    code = None
    if process is not None:
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(_ENDING)
    if code in _OUT_OF_MEMORY:
        return SetupError(
            "out-of-memory",
            "Spark's JVM ended: its memory was used up",
            "raise spark.driver.memory in the config, or lower trigger.max_records, and start it again: each table"
            " continues from its own offsets",
        )
    how = "" if code is None else f" with exit code {code}" if code >= 0 else f", by {signal.Signals(-code).name}"
    return SetupError(
        "spark-gone",
        f"Spark's JVM ended{how}",
        "start it again: each table continues from its own offsets. After SIGKILL check whether the machine or the"
        " container ran out of memory (the kernel's log, OOMKilled): then give it more, or lower spark.driver.memory",
    )


@contextmanager
def stdout_kept_for_results() -> Iterator[None]:
    """A JVM that is started in this block writes to standard error instead of standard output: until Spark's logging is
    set up it prints warnings there, and standard output must have only the command's result."""
    sys.stdout.flush()
    stdout_copy = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(stdout_copy, 1)
        os.close(stdout_copy)
