"""The service's Kafka client when Kafka does not answer."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from distributary.consume import kafka_client
from distributary.consume.kafka_client import KafkaClient
from distributary.errors import TransientError


@pytest.mark.parametrize(
    ("error", "code", "is_new"),
    [(KafkaError._TIMED_OUT, "kafka-unreachable", True), (KafkaError.POLICY_VIOLATION, "kafka-refused", False)],
)
def test_a_client_that_nobody_answers_is_replaced(
    monkeypatch: pytest.MonkeyPatch, error: int, code: str, is_new: bool
) -> None:
    """librdkafka's forgets all brokers where a cluster names none for a moment, and then asks nobody again."""
    clients: list[Any] = []

    class Client:
        def __init__(self, _options: Any) -> None:
            clients.append(self)

        def poll(self, _timeout: float) -> None: ...

        def list_topics(self, timeout: float) -> Any:  # noqa: ARG002
            if self is clients[0]:
                raise KafkaException(KafkaError(error))
            return SimpleNamespace(topics={})

    monkeypatch.setattr(kafka_client, "AdminClient", Client)
    client = KafkaClient({"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(TransientError) as caught:
        client.partitions(1)
    assert caught.value.code == code
    assert len(clients) == (2 if is_new else 1)
    if is_new:
        assert client.partitions() == {}


class SilentClient:
    """Waits in vain for an answer, as librdkafka's client does; it meets `error` on its way."""

    waited: list[float]

    def __init__(self, options: Mapping[str, Any], error: int) -> None:
        self._options, self._error = options, error

    def poll(self, _timeout: float) -> None:
        self._options["error_cb"](KafkaError(self._error))

    def list_topics(self, timeout: float) -> Any:
        self.waited.append(timeout)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


@pytest.mark.parametrize(
    ("error", "code", "waited"),
    [
        (KafkaError._AUTHENTICATION, "kafka-login", [5.0]),
        (KafkaError._SSL, "kafka-tls", [5.0]),
        (KafkaError._TRANSPORT, "kafka-unreachable", [5.0, 25.0]),
    ],
)
def test_a_refused_login_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, error: int, code: str, waited: list[float]
) -> None:
    """librdkafka tries it again and again: a wrong password would be reported after 30 seconds."""
    monkeypatch.setattr(SilentClient, "waited", [], raising=False)
    monkeypatch.setattr(kafka_client, "AdminClient", lambda options: SilentClient(options, error))
    with pytest.raises(TransientError) as caught:
        KafkaClient({"bootstrap.servers": "127.0.0.1:1"}).partitions(30)
    assert caught.value.code == code
    assert SilentClient.waited == waited
