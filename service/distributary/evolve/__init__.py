"""Changes of a table's columns: what is added, what can be held as it is, what halts the table."""
