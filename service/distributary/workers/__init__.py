"""A worker per table, and who calls it: offset planner, scheduler, batches from Kafka to the commit.

In: target offsets. Out: commits with their progress. Imports ingest and every room below.
"""
