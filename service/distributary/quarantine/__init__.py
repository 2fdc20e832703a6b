"""Records that a table can not apply: put aside, listed, redacted, purged.

In: rejected records with reasons. Out: one Delta table of them. Imports storage and what lies below.
"""
