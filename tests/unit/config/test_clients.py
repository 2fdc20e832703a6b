"""Kafka properties for the two clients."""

from __future__ import annotations

import pytest

from distributary.config.clients import librdkafka_options, spark_options
from distributary.errors import UsageError

BASE = {"bootstrap.servers": "b:9092"}


def test_a_name_and_password_become_a_jaas_line_for_java() -> None:
    given = {**BASE, "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "me", "sasl.password": 'a"b\\c'}
    options = spark_options(given)
    assert options["kafka.sasl.jaas.config"].endswith('ScramLoginModule required username="me" password="a\\"b\\\\c";')
    assert "kafka.sasl.password" not in options
    assert librdkafka_options(given)["sasl.password"] == 'a"b\\c'


def test_a_jaas_line_becomes_name_and_password_for_librdkafka() -> None:
    java = spark_options({**BASE, "sasl.username": "me", "sasl.password": 'a"b\\c'})
    jaas = java["kafka.sasl.jaas.config"]
    options = librdkafka_options({**BASE, "sasl.jaas.config": jaas})
    assert (options["sasl.username"], options["sasl.password"]) == ("me", 'a"b\\c')


def test_aborted_transactions_are_never_read() -> None:
    assert spark_options(BASE)["kafka.isolation.level"] == "read_committed"


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        ({"ssl.truststore.location": "/t.jks"}, "kafka-truststore"),
        ({"ssl.keystore.location": "/k.jks"}, "kafka-keystore"),
        ({"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"}, "kafka-jaas"),
    ],
)
def test_what_only_java_can_use_is_told(extra: dict[str, str], code: str) -> None:
    with pytest.raises(UsageError) as error:
        librdkafka_options({**BASE, **extra})
    assert error.value.code == code
    assert error.value.fix


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"])
def test_a_login_that_one_of_the_clients_does_not_know_is_told(mechanism: str) -> None:
    with pytest.raises(UsageError) as error:
        librdkafka_options({**BASE, "sasl.mechanism": mechanism})
    assert error.value.code == "kafka-sasl-mechanism"
    assert "SCRAM-SHA-512" in error.value.fix
