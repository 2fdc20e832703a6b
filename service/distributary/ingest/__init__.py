"""Reads one table's offset ranges from Kafka and decodes them.

In: offset ranges and the table's settings. Out: decoded records (see merge_records) and the format of the topic. May
import config, consume, decode, evolve and merge; must not import operate, survey or verify.
"""
