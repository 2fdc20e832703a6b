"""From a record's bytes to typed rows: envelope, position and types, all as expressions that run in the JVM."""
