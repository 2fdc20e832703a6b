"""A batch of decoded events, the state of its table and the rows of its keys, to the rows that the table gets.

Comes in: events as decode/ makes them. Goes out: rows to write and keys to remove (Arrow), and the new state. Imports
decode/ and rules/, no Spark, and does no I/O.
"""
