"""One batch of a table: read from Kafka, decoded, applied and prepared for its commit.

In: an offset range and the table's settings. Out: the topic's format, decoded records, and the write that commits them.
Imports consume, decode, evolve, apply, delta, lake and what lies below them.
"""
