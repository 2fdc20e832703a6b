"""Beside kafka2delta of PyPI, on what it can read: rows without an envelope, in Avro, deletes rewritten.

It keeps no progress with its rows, and each column as from_avro has it: dates and times stay numbers. The package runs
as it is, in an environment of its own; its micro-batches have the same offsets as the service's.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from confluent_kafka.schema_registry import SchemaRegistryClient
from tests.benchmarks.contenders import table_of
from tests.benchmarks.forms import registry
from tests.benchmarks.rounds import Rounds, in_turns
from tests.benchmarks.separate_process import Cost, SeparateProcess, cost_of
from tests.benchmarks.source import ARROW, Source
from tests.support.avro import AvroWriter
from tests.support.kafka import Record, create_topic, end_offsets, produce
from tests.support.lake import read_table

from distributary.launch.ivy import Artifact, resolve
from distributary.launch.jars import jars

PACKAGE = "kafka2delta==2.0.0"
TOPIC = "server1.dbo.rows"
# What ExtractNewRecordState was told to add, under the names that the package asks for.
_ADDED = "op,source.ts_ms,commit_lsn:log_sequence_number,change_lsn,event_serial_no"
_STRING, _LONG = {"type": "string", "optional": True}, {"type": "int64", "optional": True}
_FIELDS = {
    "__op": _STRING,
    "__source_ts_ms": _LONG,
    "__log_sequence_number": _STRING,
    "__change_lsn": _STRING,
    "__event_serial_no": _LONG,
    "__deleted": _STRING,
}


def peer(
    kafka: str, folder: Path, *, rows: int = 100_000, changes: int = 50_000, cut: int = 20_000, rounds: int = 2
) -> Rounds:
    """A snapshot and changes of its rows, in batches, into no table."""
    with registry(folder / "registry") as url:
        source = Source()
        create_topic(kafka, TOPIC)
        produce(kafka, _unwrapped(source.snapshot(rows), url))
        produce(kafka, _unwrapped(source.changes(changes), url))
        end = end_offsets(kafka, TOPIC)[0]
        avro = {
            "topic_prefix": "server1",
            "connector": "sqlserver",
            "format": "avro",
            "schema_registry": {"url": url},
            "connector_properties": {"transforms.unwrap.add.fields": _ADDED},
        }
        service = SeparateProcess("service", kafka, options={"source": avro})
        other = _Kafka2Delta(kafka, url, folder)

        def play(name: str, number: int, end: int = end) -> Cost:
            place = folder / f"{name}-{number}-{end}"
            ends = [*range(cut, end, cut), end]
            if name == "service":
                service.begin(TOPIC, place)
                cost = sum((service.take(one) for one in ends), Cost(0, 0, 0))
            else:
                cost = other.take(place, ends)
            if number:
                _check(name, table_of(place), source.truth())
            shutil.rmtree(place)
            return cost

        names = ("service", "kafka2delta")
        try:
            for name in names:
                play(name, 0, cut)  # what compiles and loads classes at first is not to be measured
            found = in_turns("peer", names, rounds, lambda name, number: play(name, number + 1))
        finally:
            service.end()
            other.end()
    found.more = {"package": PACKAGE, "batches": -(-end // cut)}
    return found


class _Kafka2Delta:
    """The package in a process of its own."""

    def __init__(self, kafka: str, registry_url: str, folder: Path) -> None:
        self._tables = 0
        python = _environment(folder / "environment")
        given = {
            "jars": [str(jar) for jar in (*jars(), *_avro(folder / "avro"))],
            "registry": registry_url,
            "kafka": kafka,
            "folder": str(folder / "warehouse"),
        }
        self._log = (folder / "kafka2delta.log").open("wb")
        script = Path(__file__).with_name("kafka2delta_process.py")
        self._process = subprocess.Popen(
            [str(python), str(script), json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=folder,
            env={"PATH": f"{python.parent}:/usr/bin:/bin", "PYSPARK_PYTHON": str(python)},
            text=True,
        )
        self._answered("ready")

    def take(self, place: Path, ends: Sequence[int]) -> Cost:
        """The topic up to each of the ends, into no table."""
        self._tables += 1
        cost, at = Cost(0, 0, 0), 0
        for end in ends:
            task = {"topic": TOPIC, "name": f"t{self._tables}", "path": str(table_of(place)), "at": at, "end": end}
            cost += cost_of(self._process.pid, lambda task=task: self._asked(task))  # type: ignore[misc]
            at = end
        return cost

    def end(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._log.close()

    def _asked(self, task: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        self._answered("done")

    def _answered(self, expected: str) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == expected:
                return
        raise RuntimeError(f"{PACKAGE} ended, see {self._log.name}:\n{Path(self._log.name).read_text()[-4000:]}")


def _avro(folder: Path) -> Iterator[Path]:
    """The jar with Spark's from_avro, which the service does not need."""
    folder.mkdir()
    resolve([Artifact("org.apache.spark", "spark-avro_2.13", version("pyspark"))], folder)
    return folder.glob("spark-avro*.jar")


def _environment(folder: Path) -> Path:
    """The Python of an environment with the package, and Spark as it is here."""
    click.echo(f"peer: installing {PACKAGE}")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    wanted = [PACKAGE, *(f"{name}=={version(name)}" for name in ("pyspark", "delta-spark"))]
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


def _check(name: str, table: Path, truth: pa.Table) -> None:
    found = read_table(table)
    assert found is not None, f"{name} made no table"
    found = found.select(ARROW.names)
    if name != "service":  # from_avro knows no time of Debezium's
        for column in ("born", "created"):
            at = found.schema.get_field_index(column)
            found = found.set_column(at, column, found.column(column).cast(ARROW.field(column).type))
    same = found.cast(ARROW).sort_by("id").combine_chunks()
    assert same.equals(truth.combine_chunks()), f"{name}: not what the source has"


def _unwrapped(records: Iterator[Record], url: str) -> Iterator[Record]:
    """Rows in the place of change events, in Avro. A delete's tombstone is left out, as the package can't read it."""
    writer: Any = AvroWriter(SchemaRegistryClient({"url": url}))
    for record in records:
        if record.value is None:
            continue
        event = json.loads(record.value)
        schema = next(field for field in event["schema"]["fields"] if field["field"] == "after")
        change, source = event["payload"], event["payload"]["source"]
        added = {
            "__op": change["op"],
            "__source_ts_ms": source["ts_ms"],
            "__log_sequence_number": source["commit_lsn"],
            "__change_lsn": source["change_lsn"],
            "__event_serial_no": source["event_serial_no"],
            "__deleted": "true" if change["op"] == "d" else "false",
        }
        fields = [*schema["fields"], *({**kind, "field": name} for name, kind in _FIELDS.items())]
        row = {
            "schema": {"type": "struct", "optional": False, "name": schema["name"], "fields": fields},
            "payload": {**(change["after"] or change["before"]), **added},
        }
        key, value = (
            writer.written(data, side) for data, side in ((record.key, "key"), (json.dumps(row).encode(), "value"))
        )
        yield record._replace(topic=TOPIC, key=key, value=value)
