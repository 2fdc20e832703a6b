"""The record of what a table has applied, which each commit carries.

In: a batch's statistics. Out: the next record. Imports no other room but the pure ones.
"""
