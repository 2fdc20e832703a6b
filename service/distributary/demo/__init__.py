"""The whole thing on one machine: a broker, change events, the service, the tables."""
