"""What must be there before anything runs: Java, the jars, the Spark session."""
