"""`init`, `plan` and `doctor` on a real Kafka, and the service with the config of `init`."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.changes import Topic
from tests.support.kafka import Record, create_topic, produce
from tests.support.lake import read_table

from distributary.cli import main
from distributary.config import load
from distributary.preflight import kafka_checks
from distributary.preflight.existing_table import read_existing_table


def ran(*arguments: str) -> tuple[int, Any]:
    """Exit code and JSON of a command."""
    result = CliRunner().invoke(main, [*arguments, "--output", "json"])
    assert result.exit_code in (0, 1), result.stderr
    return result.exit_code, json.loads(result.stdout)


def named(topic: Topic, prefix: str) -> list[Record]:
    """The records with the prefix in their source block, as connectors write it."""
    named_ = []
    for record in topic.records:
        value = json.loads(record.value or b"null")
        value["source"]["name"] = prefix
        named_.append(record._replace(value=json.dumps(value).encode()))
    return named_


def test_a_first_config_from_a_kafka_is_planned_and_runs(kafka: str, tmp_path: Path) -> None:
    prefix, other = (f"preflight{random.randrange(10**9)}" for _ in range(2))
    keyed, keyless = Topic(f"{prefix}.dbo.keyed"), Topic(f"{prefix}.dbo.log", key=())
    odd = 'a "b": ${c}\n🙂'
    row = {"name": "a", "at": None, "created": 1_700_000_000_000_000, odd: "2026-01-02T03:04:05Z", "null": None}
    keyed.change("c", {"id": 1}, {"id": 1, **row}, at=1)
    keyed.change("c", {"id": 2}, {"id": 2, **row, "at": 1.5}, at=2)
    keyless.change("c", None, {"what": "started"}, at=3)
    foreign = Topic(f"{other}.dbo.t")
    foreign.change("c", {"id": 1}, {"id": 1}, at=1)
    for topic, name in ((keyed, prefix), (keyless, prefix), (foreign, other)):
        create_topic(
            kafka, topic.name, 2 if topic is keyed else 1, {"cleanup.policy": "compact"} if topic is keyed else {}
        )
        produce(kafka, named(topic, name))
    create_topic(kafka, f"{prefix}.transaction")
    file = tmp_path / "config.yaml"

    # Nobody knows which of several connectors is meant.
    unclear = CliRunner().invoke(main, ["init", "--bootstrap-servers", kafka, "-c", str(file)])
    assert unclear.exit_code == 2
    assert "[several-prefixes]" in unclear.stderr
    assert prefix in unclear.stderr
    assert other in unclear.stderr
    assert list(tmp_path.iterdir()) == []

    code, first = ran("init", "--bootstrap-servers", kafka, "--topic-prefix", prefix, "-c", str(file))
    assert (code, first["connector"], first["tables"]) == (0, "sqlserver", ["dbo.keyed", "dbo.log"])
    assert (first["secrets"], first["halting"], first["by_value"]) == ([], [], ["dbo.keyed", "dbo.log"])
    assert CliRunner().invoke(main, ["validate", "-c", str(file)]).exit_code == 0
    types = {"id": "bigint", "name": "string", "at": "double", "created": "bigint", odd: "string"}
    assert {rule.match: rule.columns for rule in load(file).tables} == {
        "dbo.keyed": types,
        "dbo.log": {"what": "string"},
        "*.*": None,
    }
    written = file.read_text()
    assert "      created: bigint  # looks like timestamp_us\n" in written
    assert '    # Only nulls so far, which show no type: "null"\n' in written
    with file.open("a", encoding="utf-8") as text:
        text.write("spark: {spark.driver.memory: 1g, spark.master: 'local[2]'}\n")

    code, planned = ran("plan", "-c", str(file))
    tables = {table["table"]: table for table in planned["tables"]}
    assert (code, [(t["action"], t["records"], t["mode"]) for t in tables.values()]) == (
        0,
        [("create", 2, "upsert"), ("create", 1, "append")],
    )
    assert tables["dbo.keyed"]["columns"] == types
    assert [topic["topic"] for topic in planned["skipped_topics"]] == [f"{prefix}.transaction"]
    assert [w["code"] for w in tables["dbo.keyed"]["warnings"]] == ["compacted", "no-type-yet"]
    assert tables["dbo.log"]["warnings"] == []

    # The tables are those that values alone would make.
    bare = tmp_path / "bare.yaml"
    bare.write_text("\n".join(line for line in written.splitlines() if not line.startswith("    ")) + "\n")
    by_value = {table["table"]: table for table in ran("plan", "-c", str(bare))[1]["tables"]}
    assert by_value["dbo.keyed"]["by_value"] == types
    assert by_value["dbo.keyed"]["columns"] == types
    assert [w["code"] for w in by_value["dbo.keyed"]["warnings"]] == ["compacted", "no-type-yet", "typed-by-value"]

    assert ran("doctor", "-c", str(file))[0] == 0
    assert not (tmp_path / "lake").exists()  # neither has left anything

    command = [sys.executable, "-m", "distributary", "run", "--once", "-c", str(file)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr
    for name, table in tables.items():
        rows = read_table(Path(table["path"]))
        assert rows is not None
        lake = read_existing_table(table["path"])
        assert lake is not None
        arrived = [(column, kind) for column, kind in lake.columns.items() if not column.startswith("__")]
        assert arrived == list(table["columns"].items()), name
        assert rows.num_rows == table["records"]

    code, after = ran("plan", "-c", str(file))
    assert (code, {table["action"] for table in after["tables"]}) == (0, {"up_to_date"})
    found = {check["check"]: check for check in ran("doctor", "-c", str(file))[1]["checks"]}
    assert "has planned" in found["checkpoint"]["message"]

    # What comes next is told beforehand: a new column for one table, a halt for the other.
    more = Topic(keyed.name)
    more.change("u", {"id": 1}, {"id": 1, **row, "at": 2.5, "more": True}, at=9)
    produce(kafka, named(more, prefix))
    file.write_text(file.read_text().replace("keyless: append", "keyless: halt"))
    keyless.change("c", None, {"what": "went on"}, at=8)
    produce(kafka, named(Topic(keyless.name, records=keyless.records[-1:]), prefix))
    code, later = ran("plan", "-c", str(file))
    assert code == 1
    keyed_now, keyless_now = later["tables"]
    assert (keyed_now["action"], keyed_now["added"], keyed_now["records"]) == ("alter", {"more": "boolean"}, 1)
    assert (keyless_now["action"], keyless_now["error"]["code"]) == ("halt", "mode-changed")
    shown = CliRunner().invoke(main, ["plan", "-c", str(file)])
    assert "dbo.keyed: would get 1 column, then continue: 1 record to apply" in shown.stdout
    assert "[mode-changed]" in shown.stdout


@pytest.fixture
def config(kafka: str, tmp_path: Path) -> Path:
    """A config of a prefix that has no topic yet."""
    file = tmp_path / "config.yaml"
    prefix = f"doctor{random.randrange(10**9)}"
    file.write_text(
        f"version: 1\nkafka:\n  bootstrap.servers: {kafka}\nsource: {{topic_prefix: {prefix}}}\n"
        "target: {path: lake}\ncheckpoint: checkpoints\ntables: [{match: '*.*'}]\nspark: {spark.driver.memory: 64m}\n"
    )
    return file


def checks(file: Path) -> tuple[int, dict[str, tuple[str, str]]]:
    """Exit code, and state and code of each check."""
    code, found = ran("doctor", "-c", str(file))
    return code, {check["check"]: (check["state"], check["code"]) for check in found["checks"]}


def test_doctor_tells_a_wrong_address_from_a_wrong_login(
    config: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_checks, "_TIMEOUT_SECONDS", 3.0)
    right = config.read_text()
    config.write_text(right.replace(kafka, "127.0.0.1:1"))
    code, found = checks(config)
    assert (code, found["kafka"]) == (1, ("failed", "kafka-unreachable"))
    assert found["topics"] == found["clock"] == ("not_looked_at", "")
    assert found["target"] == ("ok", "")

    monkeypatch.setenv("PW", "x")
    login = "security.protocol: SASL_PLAINTEXT\n  sasl.mechanism: PLAIN\n  sasl.username: x\n  sasl.password: ${env:PW}"
    config.write_text(right.replace("source:", f"  {login}\nsource:"))
    assert checks(config)[1]["kafka"] == ("failed", "kafka-login")


def test_doctor_looks_at_topics_and_clocks(config: Path, kafka: str) -> None:
    code, found = checks(config)
    assert (code, found["kafka"], found["topics"], found["clock"]) == (
        0,
        ("ok", ""),
        ("warning", "no-topics"),
        ("ok", ""),
    )
    prefix = config.read_text().partition("topic_prefix: ")[2].partition("}")[0]
    create_topic(kafka, f"{prefix}.dbo.t", 2)
    assert checks(config)[1]["topics"] == ("ok", "")
    produce(kafka, [Record(f"{prefix}.dbo.t", 1, b"{}", b"{}", (), round((time.time() + 3600) * 1000))])
    assert checks(config)[1]["clock"] == ("warning", "clock-differs")
