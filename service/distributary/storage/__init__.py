"""Small files in the lake beside the tables: JSON documents, requests, the newest record of a table.

In: paths, documents. Out: the same, read back. Imports what knows of files and of progress records alone.
"""
