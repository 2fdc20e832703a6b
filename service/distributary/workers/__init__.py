"""A worker per table, and what drives it: offset planner, scheduler, and a batch's way to its commit.

In: target offsets. Out: commits with their progress. Imports maintain and everything below it.
"""
