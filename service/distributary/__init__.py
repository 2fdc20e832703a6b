"""distributary keeps one Delta Lake table per source table equal to the source, from Debezium's change events in
Kafka."""

__version__ = "0.1.0"
