"""The partition that Kafka's default partitioner chooses for a key. It shows whether a topic got more partitions since
then."""

from __future__ import annotations

from collections.abc import Iterable

from distributary.consume.sample import Record

_MASK, _FACTOR, _SEED = 0xFFFFFFFF, 0x5BD1E995, 0x9747B28C


def has_grown(records: Iterable[Record], partitions: int) -> bool:
    """Whether some of a topic's records were sent when it had fewer than its `partitions`: they are where the default
    partitioner put them then, and would not be there now.

    False if one lies where it never put it. The producer has another partitioner then, and nothing shows growth.
    """
    found = False
    for record in records:
        if record.key is None:
            continue
        number = murmur2(record.key)
        if number % partitions != record.partition:
            if all(number % before != record.partition for before in range(1, partitions)):
                return False
            found = True
    return found


def murmur2(data: bytes) -> int:
    """The positive 32-bit hash by which Kafka's Java client and Kafka Connect choose the partition of a key."""
    value = _SEED ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> 24) * _FACTOR & _MASK
        value = value * _FACTOR & _MASK ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 13) * _FACTOR & _MASK
    return (value ^ value >> 15) & 0x7FFFFFFF
