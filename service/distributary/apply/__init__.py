"""New rows of a table, from a batch's events, the rules' decisions and the old rows of their keys.

In: decoded events and stored rows, as Arrow. Out: rows to write, keys to remove, and the table's new memory. Imports
decode and rules; no Spark, no I/O.
"""
