"""Checks whether Kafka and the schema registry answer, and whether this config's user has the needed rights."""

from __future__ import annotations

import time

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from distributary.config import Config
from distributary.config.source import SchemaRegistry
from distributary.consume.kafka_client import KafkaClient
from distributary.errors import SetupError, TransientError
from distributary.ingest.tables import list_tables
from distributary.preflight.check_result import CheckPassed, CheckWarning

_TIMEOUT_SECONDS = 10.0
_SAMPLED_TOPICS = 3  # topics that are read for real
_MAX_CLOCK_SKEW = 5.0  # seconds; clocks that a time server keeps are closer than that


def kafka_answers(config: Config) -> CheckPassed:
    """Raises SetupError, with one code for a wrong login and another for a wrong address."""
    servers = config.kafka_properties()["bootstrap.servers"]
    try:
        topics = KafkaClient(config.kafka_properties()).partitions(_TIMEOUT_SECONDS)
    except TransientError as refused:
        raise SetupError(refused.code, f"{servers}: {refused.message}", refused.fix) from refused
    return CheckPassed(f"{servers} answers: {_count(len(topics), 'topic')}")


def topics_are_readable(config: Config) -> CheckPassed | CheckWarning:
    """Raises SetupError if topics of the config's tables may not be read."""
    kafka = KafkaClient(config.kafka_properties())
    names = [table.topic for table in list_tables(config, kafka)]
    prefix = config.source.topic_prefix
    if not names:
        return CheckWarning(
            "no-topics",
            f"no topic that begins with {prefix}. is a table of this config",
            "check source.topic_prefix and `tables` (distributary plan lists the topics that become no table), and"
            " that this user may describe the topics: Kafka hides the others",
        )
    topics = kafka.topics(names)
    closed = sorted(set(topics) - kafka.readable(topics))
    if closed:
        raise SetupError(
            "topics-not-readable",
            f"{_count(len(closed), 'topic')} may not be read: {', '.join(closed[:_SAMPLED_TOPICS])}",
            f"allow this config's user Read and Describe on topics with the prefix {prefix}",
        )
    for name in names[:_SAMPLED_TOPICS]:
        kafka.records(topics[name], kafka.earliest(topics[name]), 1)
    return CheckPassed(f"{_count(len(names), 'topic')} of the config's tables, open for reading")


def clocks_agree(config: Config) -> CheckPassed | CheckWarning:
    """Warns if a record is from the future: Kafka's own clock can't be read."""
    kafka = KafkaClient(config.kafka_properties())
    topics = kafka.topics([table.topic for table in list_tables(config, kafka)])
    newest = max((at for topic in topics.values() for at in kafka.newest_times_ms(topic)), default=None)
    if newest is None:
        return CheckPassed("no record to compare clocks with")
    ahead = newest / 1000 - time.time()
    if ahead > _MAX_CLOCK_SKEW:
        return CheckWarning(
            "clock-differs",
            f"Kafka has a record from {ahead:.0f} seconds in the future: the clock of this machine or of the record's"
            " producer is wrong, and so are lag and freshness",
            "synchronize both clocks with a time server (NTP)",
        )
    return CheckPassed("no record is from the future")


def registry_answers(registry: SchemaRegistry) -> CheckPassed:
    """Raises SetupError."""
    try:
        subjects = SchemaRegistryClient({**registry.properties(), "max.retries": 0}).get_subjects()
    except (SchemaRegistryError, OSError, ValueError) as error:
        raise _registry_error(registry.url, error) from error
    except Exception as error:  # the client does not wrap the errors of its HTTP library
        if not type(error).__module__.startswith("httpx"):
            raise
        raise _registry_error(registry.url, error) from error
    return CheckPassed(f"{registry.url} answers: {_count(len(subjects), 'subject')}")


def _registry_error(url: str, error: Exception) -> SetupError:
    status = getattr(error, "http_status_code", None)
    reason = f"HTTP status {status}" if status else type(error).__name__
    return SetupError(
        "registry-unreachable",
        f"{url}: {reason}",
        "check source.schema_registry: its url, user, token and certificates",
    )


def _count(number: int, singular: str) -> str:
    return f"{number} {singular}{'' if number == 1 else 's'}"
