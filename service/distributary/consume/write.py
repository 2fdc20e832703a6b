"""Writes single records into a topic: the service only reads, but connectors read signals from a topic."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from distributary.consume.kafka_errors import refusal
from distributary.errors import TransientError

Options = Mapping[str, str | int | float | bool]


def write_record(options: Options, topic: str, key: bytes, value: bytes, timeout: float = 30.0) -> None:
    """Writes a record into the first partition of a topic that exists, and waits until all replicas have it.

    `options` are librdkafka's, `timeout` is in seconds. Raises TransientError if Kafka does not take the record.
    """
    met: list[KafkaError] = []
    outcomes: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        outcomes.append(error)

    # Once, or not at all: a second signal would be a second snapshot.
    sure = {"enable.idempotence": True, "delivery.timeout.ms": int(timeout * 1000)}
    try:
        producer = Producer({**options, **sure, "error_cb": met.append})
        producer.produce(topic, value, key, partition=0, on_delivery=delivered)
        producer.flush(timeout + 5)
    except KafkaException as error:
        raise not_written(topic, error.args[0], met) from error
    failed = outcomes[0] if outcomes else KafkaError(KafkaError._TIMED_OUT)
    if failed is not None:
        raise not_written(topic, failed, met)


def not_written(topic: str, error: KafkaError, met: list[KafkaError]) -> TransientError:
    """The error if Kafka did not accept a record for the topic; `met`: the client's errors meanwhile."""
    refused = refusal(f"take a record for {topic}", error, met)
    return write_not_allowed(topic, refused) if refused.code == "kafka-not-allowed" else refused


def write_not_allowed(topic: str, refused: TransientError) -> TransientError:
    """The error to raise where this user may not write into the topic."""
    return TransientError(
        "kafka-write-not-allowed",
        f"{refused.message} (topic {topic})",
        "allow Write and Describe on the topic to this config's user, or use the signal table (--print)",
    )
