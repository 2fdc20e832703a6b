"""Takes one table's offset ranges from Kafka to decoded records.

In: offset ranges and the table's settings. Out: decoded records as the merge takes them, and what was learnt of their
format. May import consume, decoding, evolve, merge and config; nothing of these imports it.
"""
