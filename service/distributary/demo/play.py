"""The demo from end to end: a broker, three waves of change events, the service on them, the tables compared."""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from types import FrameType

import yaml

from distributary.demo.broker import Broker
from distributary.demo.comparison import Comparison, compare
from distributary.demo.kafka import Writer
from distributary.demo.one_change import one_change
from distributary.demo.process import free_ports
from distributary.demo.record import Record
from distributary.demo.recorded import PARTITIONS
from distributary.demo.screen import Screen
from distributary.demo.service import Service
from distributary.demo.workload import Workload
from distributary.errors import DistributaryError, UsageError
from distributary.launch.jars import jar_directory
from distributary.launch.java import SHORT_LIVED

PREFIX = "demo"
SPARK = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": f"{SHORT_LIVED} -XX:+UseSerialGC"}
# The exit code that shells expect of a command that Ctrl-C ended.
INTERRUPTED = 130


def play(*, keep: bool, directory: Path | None) -> int:
    """Run the demo. Everything it makes is in `directory` (made if it isn't there), else in a temporary one.

    `keep` leaves broker and service running afterwards until Ctrl-C or SIGTERM.
    Returns the exit code: 0 if every table equals its source, 1 if one differs, 130 after an interrupt. Raises
    DistributaryError if a step fails; the end of the service's log is printed before.
    """
    screen = Screen()
    folder = _prepare(directory)
    screen.title(folder, is_temporary=directory is None)
    try:
        with _terminated_as_interrupted(), ExitStack() as running:
            with screen.step("Looking for the service's jars (the first time they are fetched) …", "jars found"):
                jar_directory()
            with screen.step("Starting a Kafka broker (the first time its jars are fetched) …", "Kafka broker started"):
                broker = Broker.start(folder / "kafka")
                running.callback(broker.stop)
            exit_code = _play(screen, folder, broker.bootstrap, running, keep=keep)
    except KeyboardInterrupt:
        screen.note("interrupted: broker and service are stopped")
        exit_code = INTERRUPTED
    # After a failure or a difference all files stay, so that one can find the cause.
    if directory is None and exit_code in (0, INTERRUPTED):
        shutil.rmtree(folder, ignore_errors=True)
    return exit_code


def _play(screen: Screen, folder: Path, bootstrap: str, running: ExitStack, *, keep: bool) -> int:
    (http_port,) = free_ports(1)
    config = _write_config(folder, bootstrap, http_port)
    writer = Writer(bootstrap)
    workload = Workload(PREFIX)
    writer.create_topics(workload.topics(), PARTITIONS)

    service: Service | None = None
    written: list[Record] = []
    try:
        for number, wave in enumerate(workload.waves(), 1):
            screen.wave(number, wave)
            written += chain.from_iterable(wave.records.values())
            writer.write(chain.from_iterable(wave.records.values()))
            if service is None:
                service = Service(config, folder / "service.log", http_port)
                running.callback(service.kill)
                screen.note("service started with this command:")
                screen.command(f"distributary run -c {config}")
            ends = {topic: sum(partitions.values()) for topic, partitions in writer.ends.items()}
            with screen.progress(ends) as show_applied:
                service.wait_for(writer.ends, show_applied)
        assert service is not None
        comparisons = [compare(truth, folder / "lake") for truth in workload.truths()]
        screen.comparisons(comparisons)
        screen.verdict(comparisons)
        if change := one_change(written, comparisons):
            screen.one_change(change)
        if keep:
            screen.try_next(_to_try_now(config, folder / "lake", comparisons), running=True)
            screen.until_interrupted(f"http://127.0.0.1:{http_port}/", bootstrap)
            _wait_for_the_end(service)
        with screen.step("Stopping the service …", "service stopped"):
            exit_code = service.finish()
        if exit_code != 0:
            raise DistributaryError("demo-service-exit", f"the service ended with exit code {exit_code} after SIGTERM")
        if not keep:
            screen.try_next(_to_try_next(), running=False)
    except DistributaryError:
        if service is not None:
            screen.log_tail(service.log, service.log_tail())
        raise
    return 0 if all(comparison.equal for comparison in comparisons) else 1


def _wait_for_the_end(service: Service) -> None:
    pause = threading.Event()
    try:
        while not pause.wait(1):
            service.check_running()
    except KeyboardInterrupt:
        return


def _write_config(folder: Path, bootstrap: str, http_port: int) -> Path:
    """The config that a user would write for these topics; only the trigger is shorter than the default."""
    config = {
        "version": 1,
        "kafka": {"bootstrap.servers": bootstrap},
        "source": {"topic_prefix": PREFIX},
        "target": {"path": str(folder / "lake")},
        "checkpoint": str(folder / "checkpoint"),
        "spark": dict(SPARK),
        "tables": [{"match": "*.*"}],
        "trigger": {"interval": "1s"},
        "http": {"enabled": True, "host": "127.0.0.1", "port": http_port},
    }
    path = folder / "distributary.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), "utf-8")
    return path


def _to_try_now(config: Path, lake: Path, comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    """While broker and service run."""
    table = str(lake / comparisons[-1].truth.table.replace(".", "/", 1))
    read = f"from deltalake import DeltaTable; print(*DeltaTable({table!r}).to_pyarrow_table().to_pylist(), sep='\\n')"
    program, file = _program(), shlex.quote(str(config))
    return [
        ("watch the tables", f"{program} status -c {file} --watch"),
        ("compare them with their topics", f"{program} verify -c {file}"),
        ("read a table", shlex.join([sys.executable, "-c", read])),
    ]


def _to_try_next() -> list[tuple[str, str]]:
    """When all has ended."""
    program = _program()
    return [
        ("run it again, and keep it running", f"{program} demo --keep"),
        ("a config for your own Kafka", f"{program} init --bootstrap-servers HOST:PORT"),
        ("what the service would do with it", f"{program} plan -c config.yaml"),
    ]


def _program() -> str:
    """How this terminal calls the command."""
    return "distributary" if shutil.which("distributary") else shlex.join([sys.executable, "-m", "distributary"])


def _prepare(directory: Path | None) -> Path:
    """The empty directory that the demo works in. Raises UsageError `demo-directory-in-use` if it isn't empty."""
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="distributary-demo-"))
    folder = directory.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            "demo-directory-in-use",
            f"{folder} is not an empty directory",
            "name another directory, or remove what an earlier demo left there",
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM end the demo as Ctrl-C does: broker and service must not be left behind."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
