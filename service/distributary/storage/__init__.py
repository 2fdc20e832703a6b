"""Small files in the lake: JSON documents, requests, and reading a table's newest progress record without Spark.

In: paths, documents. Out: the same, read back. Imports progress and what lies below it.
"""
