"""A broker within Kafka's own client, for records that no Python client writes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p
from pathlib import Path

import confluent_kafka

# Of librdkafka's rd_kafka_vtype_t.
_END, _TOPIC, _PARTITION, _VALUE, _KEY, _TIMESTAMP, _HEADER = 0, 1, 3, 4, 5, 8, 9
_PRODUCER = 0
_PATIENCE = 30_000  # milliseconds


class MockKafka:
    """The broker at `bootstrap`, and a producer of it. Names of headers and times are sent unchanged."""

    def __init__(self) -> None:
        [path] = Path(f"{Path(confluent_kafka.__file__).parent}.libs").glob("librdkafka*")
        self._library = library = ctypes.CDLL(str(path))
        library.rd_kafka_conf_new.restype = library.rd_kafka_new.restype = c_void_p
        library.rd_kafka_handle_mock_cluster.restype = c_void_p
        library.rd_kafka_mock_cluster_bootstraps.restype = c_char_p
        settings, fault = c_void_p(library.rd_kafka_conf_new()), ctypes.create_string_buffer(512)
        for name, value in ((b"test.mock.num.brokers", b"1"), (b"log_level", b"0")):
            assert not library.rd_kafka_conf_set(settings, name, value, fault, c_size_t(512)), fault.value
        self._client = c_void_p(library.rd_kafka_new(_PRODUCER, settings, fault, c_size_t(512)))
        cluster = c_void_p(library.rd_kafka_handle_mock_cluster(self._client))
        self.bootstrap = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()

    def produce(self, topic: str, key: bytes, value: bytes, headers: dict[bytes, bytes], timestamp: int = 1) -> None:
        """Appends a record to partition 0."""
        pairs = [
            part
            for name, data in headers.items()
            for part in (c_int(_HEADER), c_char_p(name), c_char_p(data), c_ssize_t(len(data)))
        ]
        failed = self._library.rd_kafka_producev(
            self._client,
            *(c_int(_TOPIC), c_char_p(topic.encode()), c_int(_PARTITION), c_int32(0)),
            *(c_int(_KEY), c_char_p(key), c_size_t(len(key)), c_int(_VALUE), c_char_p(value), c_size_t(len(value))),
            *(c_int(_TIMESTAMP), c_int64(timestamp), *pairs, c_int(_END)),
        )
        assert not failed
        assert not self._library.rd_kafka_flush(self._client, c_int(_PATIENCE))

    def close(self) -> None:
        """Ends the broker and its producer."""
        self._library.rd_kafka_destroy(self._client)


@contextmanager
def running_mock_kafka() -> Iterator[MockKafka]:
    """Such a broker, until the end of the block."""
    broker = MockKafka()
    try:
        yield broker
    finally:
        broker.close()
