"""The progress record: the offsets and positions that a table has applied, stored with each commit.

In: a batch's statistics. Out: the next record. Imports consume and decode; no I/O.
"""
