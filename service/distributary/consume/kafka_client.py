"""All of Kafka but the fetching of batches: topics, offsets, a topic's first and newest records, single writes and the
consumer group's offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
    TopicMetadata,
)
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from distributary.config.clients import librdkafka_options
from distributary.consume.kafka_errors import UNREACHABLE, refusal
from distributary.consume.offsets import Offsets
from distributary.consume.sample import SampledRecord, records_from, values_at
from distributary.consume.tail import Tail
from distributary.consume.write import write_record
from distributary.errors import SetupError, TransientError

_NO_TOPIC = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")
_TIMEOUT = 30.0  # seconds an admin call may take before the work is tried again
_FIRST_ANSWER = 5.0  # seconds without an answer after which the client's errors are checked for a refused login
_SAMPLED_RECORDS = 20  # records per partition from which a table's format is learnt
_LOOKED_FURTHER = 2_000  # where none of those has a value
_LOADING = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")
_UNTIL_LOADED = Retrying(  # a broker that has just started, or that has just become the group's
    retry=retry_if_result(lambda refused: any(name in _LOADING for name in refused)),
    stop=stop_after_delay(10),
    wait=wait_fixed(0.5),
    retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
)
_FIX = "correct the properties under `kafka` in the config"
_NOT_FOR_US = (
    *("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"),
    "INVALID_TOPIC_EXCEPTION",
)


@dataclass(frozen=True)
class Topic:
    """A topic at present. `topic_id` changes when it is deleted and created again."""

    name: str
    topic_id: str
    partitions: tuple[int, ...]


class KafkaClient:
    """A client of Kafka for small requests. Every method raises TransientError if Kafka does not answer."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        # The client's own lines on standard error would mix with the log: what matters comes back as an error anyway.
        self._options: dict[str, str | int | float | bool] = {**librdkafka_options(properties), "log_level": 0}
        self._met: list[KafkaError] = []
        try:
            self._admin = self._new_client()
        except KafkaException as error:  # a file of certificates that can't be read, a value that it does not know
            fault = error.args[0]
            if fault.name() == "_INVALID_ARG":
                raise SetupError(
                    "kafka-config", f"Kafka's client does not accept the config: {fault.str()}", _FIX
                ) from error
            raise refusal("take the config's `kafka`", fault) from error

    def _new_client(self) -> AdminClient:
        options: dict[str, Any] = {**self._options, "error_cb": self._met.append}
        return AdminClient(options)

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """Those of the topics that exist."""
        wanted = list(names)
        if not wanted:
            return {}
        topics_by_name = {}
        futures = self._admin.describe_topics(TopicCollection(wanted), request_timeout=_TIMEOUT)
        for name, future in futures.items():
            try:
                described = future.result()
            except KafkaException as error:
                if error.args[0].name() in _NO_TOPIC:
                    continue
                raise self._refused("describe topics", error) from error
            ids = tuple(sorted(p.id for p in described.partitions))
            topics_by_name[name] = Topic(name, str(described.topic_id), ids)
        return topics_by_name

    def _refused(self, request: str, error: KafkaException) -> TransientError:
        self._admin.poll(0)  # hands over what was met meanwhile
        met = list(self._met)
        self._met.clear()
        refused = refusal(request, error.args[0], met)
        if refused.code == UNREACHABLE:
            # A client that gets an empty list of brokers, as from a cluster whose brokers are fenced for a moment,
            # forgets its brokers and never connects again. Without a new client the service would wait for ever.
            self._admin = self._new_client()
        return refused

    def names(self) -> list[str]:
        """All topics of the cluster that this client may see."""
        return sorted(self.partitions())

    def partitions(self, seconds: float = _TIMEOUT) -> dict[str, tuple[int, ...]]:
        """All topics of the cluster with their partitions, where Kafka answers within so many seconds.

        The client tries a refused login again and again until the time is up: this raises at the first look.
        """
        first = min(seconds, _FIRST_ANSWER)
        self._admin.poll(0)
        self._met.clear()  # earlier errors do not concern this login
        try:
            listed = self._list_topics(first)
        except TransientError as refused:
            if refused.code != UNREACHABLE or first == seconds:
                raise
            listed = self._list_topics(seconds - first)
        return {name: tuple(sorted(topic.partitions)) for name, topic in listed.items()}

    def _list_topics(self, seconds: float) -> dict[str, TopicMetadata]:
        try:
            return self._admin.list_topics(timeout=seconds).topics
        except KafkaException as error:
            raise self._refused("list topics", error) from error

    def tail(self, topic: str, offset: int) -> Tail:
        """Reads the topic's only partition, from that offset on."""
        return Tail(self._options, topic, offset)

    def write(self, topic: str, key: bytes, value: bytes) -> None:
        """Writes a record into the first partition of a topic that exists."""
        write_record(self._options, topic, key, value)

    def earliest(self, topic: Topic) -> Offsets:
        """The first offset that each partition still has."""
        return self._offsets(topic, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def latest(self, topic: Topic) -> Offsets:
        """The offset after the last committed record of each partition."""
        return self._offsets(topic, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def at_time(self, topic: Topic, milliseconds: int) -> Offsets:
        """The offset of each partition's first record of that time (since 1970) or later, by Kafka's time of the
        records; the partition's end where there is none."""
        offsets = self._offsets(topic, OffsetSpec.for_timestamp(milliseconds))
        end = self.latest(topic) if any(offset < 0 for offset in offsets.values()) else {}
        return {p: offset if offset >= 0 else end[p] for p, offset in offsets.items()}

    def _offsets(self, topic: Topic, spec: OffsetSpec) -> Offsets:
        wanted = {TopicPartition(topic.name, p): spec for p in topic.partitions}
        try:
            futures = self._admin.list_offsets(
                wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_TIMEOUT
            )
            return {tp.partition: future.result().offset for tp, future in futures.items()}
        except KafkaException as error:
            raise self._refused(f"list the offsets of {topic.name}", error) from error

    def newest_time_ms(self, topic: Topic) -> int | None:
        """The latest timestamp of the topic's records, in milliseconds since 1970; None if it has no record."""
        wanted = {TopicPartition(topic.name, p): OffsetSpec.max_timestamp() for p in topic.partitions}  # type: ignore[no-untyped-call]
        try:
            futures = self._admin.list_offsets(wanted, request_timeout=_TIMEOUT)
            times = [future.result().timestamp for future in futures.values()]
        except KafkaException as error:
            raise self._refused(f"find the newest record of {topic.name}", error) from error
        return max((time for time in times if time > 0), default=None)

    def settings(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """The topics' own settings (cleanup.policy, retention.ms, …) by topic; a topic whose settings this client may
        not see, or that does not exist, is not among them."""
        wanted = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        answers = self._admin.describe_configs(wanted, request_timeout=_TIMEOUT) if wanted else {}
        settings_by_name = {}
        for resource, future in answers.items():
            try:
                entries = future.result()
            except KafkaException as error:
                if error.args[0].name() in _NOT_FOR_US:
                    continue
                raise self._refused(f"describe the settings of {resource.name}", error) from error
            settings_by_name[resource.name] = {
                name: entry.value for name, entry in entries.items() if entry.value is not None
            }
        return settings_by_name

    def is_compacted(self, name: str) -> bool:
        """Whether Kafka keeps only each key's last record; False if the topic's settings may not be read."""
        return "compact" in self.settings([name]).get(name, {}).get("cleanup.policy", "")

    def readable(self, names: Iterable[str]) -> set[str]:
        """Those of the topics that this client may read."""
        wanted = list(names)
        futures = self._admin.describe_topics(
            TopicCollection(wanted), include_authorized_operations=True, request_timeout=_TIMEOUT
        )
        readable_names = set()
        for name, future in futures.items():
            try:
                allowed = future.result().authorized_operations
            except KafkaException as error:
                if error.args[0].name() in _NOT_FOR_US:
                    continue
                raise self._refused("describe topics", error) from error
            # A broker that does not check rights names none.
            if not allowed or AclOperation.READ in allowed:
                readable_names.add(name)
        return readable_names

    def newest_times_ms(self, topic: Topic) -> list[int]:
        """The largest timestamp of each partition's records, in milliseconds since 1970; none for an empty one."""
        newest = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(topic.name, p): newest for p in topic.partitions}
        try:
            futures = self._admin.list_offsets(wanted, request_timeout=_TIMEOUT)
            return [at for future in futures.values() if (at := future.result().timestamp) > 0]
        except KafkaException as error:
            raise self._refused(f"list the offsets of {topic.name}", error) from error

    def head(self, topic: Topic, start: Mapping[int, int]) -> list[SampledRecord]:
        """The records from `start` on from which a table's format is learnt."""
        records = self.records(topic, start, _SAMPLED_RECORDS)
        return records if any(record.value for record in records) else self.records(topic, start, _LOOKED_FURTHER)

    def records(
        self, topic: Topic, start: Mapping[int, int], at_most: int, timeout: float = 10.0
    ) -> list[SampledRecord]:
        """Up to `at_most` records of each partition from its offset in `start` on, fewer where there are no more, or
        where they do not come within `timeout` seconds; no record at all means that there is none."""
        latest = self.latest(topic)
        behind = {p: latest[p] - offset for p, offset in start.items() if latest.get(p, 0) > offset}
        expected = sum(min(at_most, n) for n in behind.values())
        if not expected:
            return []
        from_there = {p: start[p] for p in behind}
        return records_from(self._options, topic.name, from_there, at_most, expected, timeout)

    def sample(self, topic: str, offsets: Iterable[tuple[int, int]]) -> list[list[bytes | None]]:
        """The values of some records from each of these partitions and offsets on, if there are any and they arrive in
        time."""
        return values_at(self._options, topic, offsets, _SAMPLED_RECORDS)

    def commit(self, group: str, offsets: Mapping[str, Offsets]) -> None:
        """Commits offsets, by topic, to a consumer group that has no members.

        Skips partitions that no longer exist. Raises TransientError.
        """
        wanted = [TopicPartition(t, p, offset) for t, partitions in offsets.items() for p, offset in partitions.items()]
        refused = _UNTIL_LOADED(self._refused_offsets, group, wanted)
        if refused:
            raise TransientError(
                "kafka-group-offsets",
                f"Kafka did not accept offsets for the consumer group {group}: {', '.join(sorted(refused.values()))}",
                "allow READ on the group and on the topics, name another group under consumer_group.name, or set"
                " consumer_group.enabled: false",
            )

    def _refused_offsets(self, group: str, wanted: list[TopicPartition]) -> dict[str, str]:
        """The errors with which Kafka refused it: message by name."""
        # Not the admin client: where a group's coordinator goes away, librdkafka's requests to it end the process
        # (github.com/confluentinc/librdkafka/pull/5397). A consumer that subscribes to nothing is no member either.
        consumer = Consumer({**self._options, "group.id": group, "enable.auto.commit": False})
        try:
            results = consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            refused = [error.args[0]]
        else:
            refused = [result.error for result in results or () if result.error]
        finally:
            consumer.close()
        return {error.name(): error.str() for error in refused if error.name() not in _NO_TOPIC}
