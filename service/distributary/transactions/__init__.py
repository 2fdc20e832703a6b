"""Transactions of the source across tables: the last one up to which all tables are complete.

In: Debezium's transaction topic and the tables' progress. Out: the last complete one. Imports workers and what lies
below it.
"""
