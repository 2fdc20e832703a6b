"""The demo: a broker, change events, the service and its tables on one machine."""
