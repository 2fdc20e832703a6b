"""Errors of Kafka's client become errors with a fix."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from distributary.consume.kafka_client import KafkaClient
from distributary.consume.kafka_errors import CODES, OFFSETS_GONE, java_refusal, refusal
from distributary.errors import SetupError

KAFKA = "org.apache.kafka.common"
TIMED_OUT = KafkaError(KafkaError._TIMED_OUT)


@pytest.mark.parametrize(
    ("error", "met", "code"),
    [
        (KafkaError._TIMED_OUT, [], "kafka-unreachable"),
        (KafkaError._TRANSPORT, [], "kafka-unreachable"),
        (KafkaError._TIMED_OUT, [KafkaError._RESOLVE], "kafka-unreachable"),
        (KafkaError._TIMED_OUT, [KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION], "kafka-login"),
        (KafkaError._TRANSPORT, [KafkaError._TRANSPORT, KafkaError._SSL], "kafka-tls"),
        (KafkaError.SASL_AUTHENTICATION_FAILED, [], "kafka-login"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, [], "kafka-not-allowed"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, [KafkaError._TRANSPORT], "kafka-not-allowed"),
        (KafkaError.POLICY_VIOLATION, [], "kafka-refused"),
    ],
)
def test_what_was_met_meanwhile_tells_why_it_waited_in_vain(error: int, met: list[int], code: str) -> None:
    found = refusal("list topics", KafkaError(error), [KafkaError(one) for one in met])
    assert (found.code, found.code in CODES) == (code, True)
    assert found.message.startswith("Kafka did not list topics: ")
    assert found.fix


@pytest.mark.parametrize("error", [KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE])
def test_offsets_that_are_gone_have_a_code_of_their_own(error: int) -> None:
    assert refusal("give records", KafkaError(error)).code == OFFSETS_GONE


def test_a_name_that_is_not_found_is_reported_rather_than_that_time_ran_out() -> None:
    unknown = KafkaError(KafkaError._RESOLVE, "no such host")
    assert refusal("list topics", TIMED_OUT, [unknown]).message.endswith("no such host")
    assert refusal("list topics", TIMED_OUT).message.endswith(TIMED_OUT.str())


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["org.apache.spark.SparkException", f"{KAFKA}.errors.TopicAuthorizationException"], "kafka-not-allowed"),
        ([f"{KAFKA}.KafkaException", f"{KAFKA}.errors.SaslAuthenticationException"], "kafka-login"),
        (["javax.security.auth.login.LoginException", f"{KAFKA}.KafkaException"], "kafka-login"),
        (["javax.security.auth.login.LoginException"], None),
        (["java.util.concurrent.ExecutionException", f"{KAFKA}.errors.TimeoutException"], "kafka-unreachable"),
        (["java.util.concurrent.TimeoutException"], None),
        (["com.example.AuthenticationException", f"{KAFKA}.KafkaException"], None),
        ([], None),
    ],
)
def test_java_errors_of_kafka_have_the_same_codes(names: list[str], code: str | None) -> None:
    found = java_refusal(names)
    assert (found.code if found else None) == code


def test_properties_that_the_client_does_not_take_are_a_matter_of_the_config() -> None:
    with pytest.raises(SetupError) as raised:
        KafkaClient({"bootstrap.servers": "localhost:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"})
    assert raised.value.code == "kafka-config"
    assert "kafka" in raised.value.fix
