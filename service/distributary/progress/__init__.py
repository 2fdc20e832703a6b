"""The progress record: what a table has applied, carried by each commit.

In: a batch's statistics. Out: the next record. Imports consume and decode; no I/O.
"""
