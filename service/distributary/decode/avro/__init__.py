"""Avro with schemas in a registry: finding a record's schema, parsing it, and reading records with it."""
