"""Whether Kafka and the schema registry answer, and let this config's user do what the service does."""

from __future__ import annotations

import time

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from distributary.config import Config
from distributary.config.source import SchemaRegistry
from distributary.consume.broker import Broker
from distributary.errors import SetupError, TransientError
from distributary.ingest.tables import listed
from distributary.preflight.check_result import Doubtful, Healthy

_SECONDS = 10.0
_TRIED = 3  # topics that are read for real
_FUTURE = 5.0  # seconds; clocks that a time server keeps are closer than that


def kafka_answers(config: Config) -> Healthy:
    """Raises SetupError that tells a wrong login from a wrong address."""
    servers = config.kafka_properties()["bootstrap.servers"]
    try:
        topics = Broker(config.kafka_properties()).partitions(_SECONDS)
    except TransientError as refused:
        raise SetupError(refused.code, f"{servers}: {refused.message}", refused.fix) from refused
    return Healthy(f"{servers} answers: {_count(len(topics), 'topic')}")


def topics_are_readable(config: Config) -> Healthy | Doubtful:
    """Raises SetupError where topics of the config's tables may not be read."""
    broker = Broker(config.kafka_properties())
    names = [one.topic for one in listed(config, broker)]
    prefix = config.source.topic_prefix
    if not names:
        return Doubtful(
            "no-topics",
            f"no topic that begins with {prefix}. is a table of this config",
            "check source.topic_prefix and `tables` (distributary plan lists topics that are left alone), and that"
            " this user may describe the topics: others are not shown to it",
        )
    topics = broker.topics(names)
    closed = sorted(set(topics) - broker.readable(topics))
    if closed:
        raise SetupError(
            "topics-not-readable",
            f"{_count(len(closed), 'topic')} may not be read: {', '.join(closed[:_TRIED])}",
            f"allow Read and Describe on topics with the prefix {prefix} to this config's user",
        )
    for name in names[:_TRIED]:
        broker.records(topics[name], broker.earliest(topics[name]), 1)
    return Healthy(f"{_count(len(names), 'topic')} of the config's tables, open for reading")


def clocks_agree(config: Config) -> Healthy | Doubtful:
    """Kafka does not tell its time, but a record from the future does."""
    broker = Broker(config.kafka_properties())
    topics = broker.topics([one.topic for one in listed(config, broker)])
    newest = max((at for topic in topics.values() for at in broker.newest_times(topic)), default=None)
    if newest is None:
        return Healthy("no record tells another clock")
    ahead = newest / 1000 - time.time()
    if ahead > _FUTURE:
        return Doubtful(
            "clock-differs",
            f"Kafka has a record from {ahead:.0f} seconds in the future: this machine's clock, or that of who wrote it,"
            " is wrong, and so are lags and freshness",
            "have a time server keep both clocks",
        )
    return Healthy("no record is from the future")


def registry_answers(registry: SchemaRegistry) -> Healthy:
    """Raises SetupError."""
    try:
        subjects = SchemaRegistryClient({**registry.properties(), "max.retries": 0}).get_subjects()
    except (SchemaRegistryError, OSError, ValueError) as error:
        raise _registry_error(registry.url, error) from error
    except Exception as error:  # the client lets its HTTP library's own errors through
        if not type(error).__module__.startswith("httpx"):
            raise
        raise _registry_error(registry.url, error) from error
    return Healthy(f"{registry.url} answers: {_count(len(subjects), 'subject')}")


def _registry_error(url: str, error: Exception) -> SetupError:
    status = getattr(error, "http_status_code", None)
    reason = f"HTTP status {status}" if status else type(error).__name__
    return SetupError(
        "registry-unreachable",
        f"{url}: {reason}",
        "check source.schema_registry: its url, user, token and certificates",
    )


def _count(number: int, one: str) -> str:
    return f"{number} {one}{'' if number == 1 else 's'}"
