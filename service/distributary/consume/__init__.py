"""From Kafka: which topics are tables, which offsets a table has still to apply, and those records as a DataFrame."""
