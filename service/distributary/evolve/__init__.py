"""Changes of a table's columns: which are added, which are widened, which halt the table.

In: the table's and the records' columns. Out: the difference, or a TableHalt. Imports config and decode; no Spark, no
I/O.
"""
