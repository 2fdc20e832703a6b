"""A Kafka with TLS, passwords, tokens, client certificates and ACLs, and the public command with docs/kafka.md's
settings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType  # type: ignore[attr-defined]
from tests.support.identity_provider import SCOPE
from tests.support.playback import Playback, Running
from tests.support.recorded import Record, Scenario, TruthTable
from tests.support.secure_kafka import PASSWORD, USER, SecureKafka, may, may_not, running_secure_kafka
from tests.support.sent_again import halves

from distributary.consume.kafka_client import KafkaClient
from distributary.storage.lake_files import newest_record

VARIABLE = "KAFKA_PASSWORD_OF_THE_TEST"
SCENARIO = Scenario("pg_json_schema")
CLOSED, OTHER = (SCENARIO.tables[name] for name in ("lsn_race", "num_keys"))
TABLES = (CLOSED, OTHER)
SECONDS = 300.0
"""What a change of rights may take to be seen."""


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    with running_secure_kafka(tmp_path_factory.mktemp("secure")) as kafka:
        yield kafka


def by_password(kafka: SecureKafka) -> dict[str, str]:
    return {
        "bootstrap.servers": kafka.password,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": f"${{env:{VARIABLE}}}",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(kafka.authority),
    }


def by_certificate(kafka: SecureKafka) -> dict[str, str]:
    return {
        "bootstrap.servers": kafka.certificate,
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(kafka.authority),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(kafka.client),
    }


def by_oauth(kafka: SecureKafka) -> dict[str, str]:
    return {
        "bootstrap.servers": kafka.token,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": kafka.identity.token_url,
        "sasl.oauthbearer.client.credentials.client.id": USER,
        "sasl.oauthbearer.client.credentials.client.secret": f"${{env:{VARIABLE}}}",
        "sasl.oauthbearer.scope": SCOPE,
        "https.ca.location": str(kafka.authority),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(kafka.authority),
    }


class Source:
    """Two tables' topics, of which a part of the records is sent at a time, and a user with just the rights that the
    docs name."""

    def __init__(self, kafka: SecureKafka, folder: Path, login: dict[str, str], **settings: Any) -> None:
        self.playback = Playback(kafka.open, folder, kafka=login, **settings)
        self.playback.configure({"match": f"{SCENARIO.name}.{table.topic_name}"} for table in TABLES)
        self._left = {table.name: list(SCENARIO.topic(table.schema, table.name)) for table in TABLES}
        self._sent = dict.fromkeys(self._left, 0)
        prefix = self.playback.prefix
        kafka.allow(
            may(AclOperation.READ, ResourceType.TOPIC, f"{prefix}.", prefix=True),
            may(AclOperation.READ, ResourceType.GROUP, f"distributary-{prefix}"),
        )

    def send_half(self) -> None:
        """The first half of what is left."""
        for name, records in self._left.items():
            now, self._left[name] = halves(records)
            self._send(name, now)

    def send_all(self) -> None:
        """What is left."""
        for name, records in self._left.items():
            self._left[name] = []
            self._send(name, records)

    def _send(self, name: str, records: list[Record]) -> None:
        self.playback.send(SCENARIO, records)
        self._sent[name] += len(records)

    def topic(self, table: TruthTable) -> str:
        return f"{self.playback.prefix}.{SCENARIO.name}.{table.topic_name}"

    def taken(self, table: TruthTable) -> int:
        """How many records the table has applied."""
        newest = newest_record(str(self.playback.lake / SCENARIO.name / table.topic_name))
        return sum(newest.progress.next.values()) if newest else 0

    def is_taken(self, table: TruthTable) -> bool:
        """Whether all that was sent is applied."""
        return self.taken(table) == self._sent[table.name]

    def differences(self) -> list[str]:
        return [str(found) for table in TABLES if (found := self.playback.difference(SCENARIO, table))]

    def command(self, name: str, *options: str, password: str = PASSWORD) -> tuple[int, str]:
        """A command of `distributary`: its exit code and all that it wrote."""
        done = subprocess.run(
            [sys.executable, "-m", "distributary", name, "-c", str(self.playback.config_file), *options],
            env={**os.environ, VARIABLE: password},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "login", [by_password, *(pytest.param(login, marks=pytest.mark.slow) for login in (by_certificate, by_oauth))]
)
def test_tables_are_filled_over_tls_with_no_more_rights_than_the_docs_name(
    secure: SecureKafka, tmp_path: Path, login: Callable[[SecureKafka], dict[str, str]]
) -> None:
    source = Source(secure, tmp_path, login(secure))
    source.send_all()
    written = []
    for name, options in (("doctor", ()), ("plan", ()), ("run", ("--once",)), ("status", ())):
        code, output = source.command(name, *options)
        assert code == 0, f"{name}: {output[-4000:]}"
        written.append(output)
    assert not source.differences()
    if login is by_oauth:  # both clients have logged in by tokens
        assert {agent.startswith("Java") for agent in secure.identity.served} == {True, False}, secure.identity.served
    assert "kafka-group-offsets" not in written[2]
    # The password is nowhere: not in what commands write, and in no file of lake, checkpoint or notes.
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for spelled in (PASSWORD, json.dumps(PASSWORD)[1:-1], PASSWORD[:8]):
        assert not [output for output in written if spelled in output]
        assert not [content for content in files if spelled.encode() in content]


@pytest.mark.parametrize("login", [by_certificate, by_oauth])
def test_a_command_without_spark_logs_in(
    secure: SecureKafka, tmp_path: Path, login: Callable[[SecureKafka], dict[str, str]]
) -> None:
    source = Source(secure, tmp_path, login(secure))
    source.send_all()
    code, output = source.command("plan")
    assert code == 0, output[-4000:]
    assert all(source.topic(table) in output for table in TABLES)


@pytest.mark.parametrize("login", [by_password, pytest.param(by_oauth, marks=pytest.mark.slow)])
def test_a_wrong_password_ends_the_command_and_is_called_so(
    secure: SecureKafka, tmp_path: Path, login: Callable[[SecureKafka], dict[str, str]]
) -> None:
    source = Source(secure, tmp_path, login(secure))
    for name, options, expected in (("doctor", (), 1), ("run", (), 2), ("status", (), 2)):
        code, output = source.command(name, *options, password="not-the-one")
        assert (code, "kafka-login" in output) == (expected, True), output[-4000:]
        assert "not-the-one" not in output


@pytest.mark.slow  # what such refusals are told as is in tests/unit/consume/test_refusals.py
def test_6_3_a_topic_that_may_not_be_read_any_more_leaves_the_other_tables_alone(
    secure: SecureKafka, tmp_path: Path
) -> None:
    """First it may not be read, then not even be seen."""
    login = by_password(secure)
    source = Source(secure, tmp_path, login, trigger={"interval": "1s"})
    source.send_half()
    user = KafkaClient({**login, "sasl.password": PASSWORD})
    with source.playback.start(**{VARIABLE: PASSWORD}) as running:
        running.wait_until(lambda: all(source.is_taken(table) for table in TABLES))
        for operation in (AclOperation.READ, AclOperation.ALL):
            result, before = refusals(running), source.taken(CLOSED)
            refusal = may_not(operation, ResourceType.TOPIC, source.topic(CLOSED))
            secure.allow(refusal)
            running.wait_until(lambda: not user.readable([source.topic(CLOSED)]))
            source.send_half()
            running.wait_until(lambda: source.is_taken(OTHER))
            running.wait_until(lambda result=result: refusals(running) > result)  # type: ignore[misc]
            assert source.taken(CLOSED) == before
            secure.take_back(refusal)
            running.wait_until(lambda: source.is_taken(CLOSED))
        source.send_all()
        running.wait_until(lambda: not source.differences())
        running.process.send_signal(signal.SIGTERM)
        assert running.ended(120).exit_code == 0


def refusals(running: Running) -> int:
    """The number of log entries on a missing right."""
    return running.log.read_text("utf-8").count('"kafka-not-allowed"')
