"""Raw Kafka records to events: envelope, operation, position, key and typed values, or a rejection reason.

In: bytes of keys, values and headers. Out: Arrow tables of events and of rejected records. Imports types and
errors alone; no Spark, no I/O.
"""
