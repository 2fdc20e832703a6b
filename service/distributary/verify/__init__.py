"""Compares tables with their topics or with the live source. Reads only, except for a temporary replay of the topic.

In: a config and a table. Out: which keys differ and why. Imports ingest and what lies below it; not workers.
"""
