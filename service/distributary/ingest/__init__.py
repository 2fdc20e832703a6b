"""Reads one table's offset ranges from Kafka and decodes them.

In: offset ranges and the table's settings. Out: decoded records, the format of the topic, and the commit that applies
them. May import config, consume, decode, evolve, rules, apply, delta and lake; must not import workers, preflight or
verify.
"""
