"""The rules: they decide the new row of each key from positions and operations alone.

In: metadata of a table's events and its memory. Out: the new state of each key, and the new memory
(event_processor.apply for single events, column_batch.apply_columns for columns). Imports the standard library, numpy
and pyarrow alone; no row values, no Spark, no I/O. The rules' numbers in docstrings are those of docs/rules.md.
"""
