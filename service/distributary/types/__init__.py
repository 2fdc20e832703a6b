"""Column types: from the name of a type to how its values are read, and from values on the wire to Arrow.

In: Connect schemas, names of types, wire values of a column. Out: Arrow types and arrays, or the reason of a rejection.
Imports errors and reasons alone; no Spark, no I/O. One module per family of types, to which a new type is added (all
steps: docs/follow-a-record.md); `from_schema` and `from_name` find the type, `announced_types` finds it from a
database's own name, `conversions` turns one type into another.
"""
