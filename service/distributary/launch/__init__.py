"""Prepares what the service runs on: Java, the jars, the Spark session.

In: Spark's properties. Out: a session, or a SetupError. Imports errors and config alone.
"""
