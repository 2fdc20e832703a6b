"""Kafka records to typed columns: pure functions over Arrow. No Spark, no I/O."""
