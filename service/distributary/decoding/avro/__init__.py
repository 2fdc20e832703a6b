"""Avro with schemas in a registry: where records name their schema, what the schema stands for, and its reader."""
