"""Rules: metadata of a table's events and its remembered state in; per key what becomes of its row, and the new state,
out (batch.apply for events, column_batch.apply_columns for columns). Pure: no I/O, no row values, no Spark.
It may import the standard library, numpy and pyarrow, and nothing else of the package."""
