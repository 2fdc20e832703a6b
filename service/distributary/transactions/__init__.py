"""Transactions of the source across tables: which are complete, and up to where a reader may go.

In: Debezium's transaction topic and the tables' progress. Out: frontiers. Imports workers and what lies below.
"""
