"""distributary keeps one Delta Lake table per source table equal to what Debezium writes into Kafka."""

__version__ = "0.1.0"
