"""Records that a table can't apply: written, listed, redacted, purged, set aside.

In: rejected records with reasons. Out: one Delta table of them. Imports ingest and what lies below it.
"""
