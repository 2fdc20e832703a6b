"""What a table must equal, as values and pure functions: no I/O, no Spark, no row values, only metadata of events."""
