"""One worker per table, with offset planner and scheduler: takes each batch to its commit.

In: target offsets. Out: commits with their progress. Imports maintain and everything below it.
"""
