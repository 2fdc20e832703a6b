"""From Kafka: which topics are tables, which offsets a table has still to take in, and those records as a DataFrame."""
