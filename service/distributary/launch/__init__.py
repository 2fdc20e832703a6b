"""What must exist before anything runs: Java, the jars, the Spark session.

In: Spark's properties. Out: a session, or a SetupError. Imports errors and config alone.
"""
