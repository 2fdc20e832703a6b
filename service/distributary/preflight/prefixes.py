"""Finds the topic prefixes of the connectors that write to a Kafka, from the records of its topics."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from distributary.consume.heartbeats import HEARTBEATS
from distributary.consume.kafka_client import KafkaClient, Topic
from distributary.consume.sample import SampledRecord
from distributary.decode.envelope import is_envelope
from distributary.ingest.record_form import parse_payload

_NEWEST = 5  # records per partition
_THREADS = 8


def prefixes(kafka: KafkaClient) -> list[str]:
    """The prefixes, sorted. The source block of an envelope names its prefix. If no record has one, the prefix is taken
    from the names of topics with unwrapped rows. Raises TransientError."""
    names = kafka.names()
    topics = kafka.topics(name for name in names if name.count(".") >= 2 and not name.startswith("_"))
    with ThreadPoolExecutor(_THREADS) as pool:
        looked = list(pool.map(lambda topic: (topic.name, _newest(kafka, topic)), topics.values()))
    prefix_set = {prefix for name, records in looked if (prefix := named_by(name, records)) is not None}
    prefix_set |= {name.removeprefix(HEARTBEATS) for name in names if name.startswith(HEARTBEATS)}
    return sorted(prefix_set) or sorted({name.rsplit(".", 2)[0] for name, records in looked if _has_rows(records)})


def _newest(kafka: KafkaClient, topic: Topic) -> list[SampledRecord]:
    first = kafka.earliest(topic)
    start = {p: max(first.get(p, 0), end - _NEWEST) for p, end in kafka.latest(topic).items()}
    return kafka.records(topic, start, _NEWEST)


def named_by(topic: str, records: Iterable[SampledRecord]) -> str | None:
    """The prefix that the envelopes of a topic name; None if none does."""
    for record in records:
        value, _ = parse_payload(record.value)
        if isinstance(value, dict) and is_envelope(value):
            name = value["source"].get("name")
            if isinstance(name, str) and name and topic.startswith(f"{name}."):
                return name
    return None


def _has_rows(records: Iterable[SampledRecord]) -> bool:
    return any(isinstance(parse_payload(record.value)[0], dict) for record in records)
