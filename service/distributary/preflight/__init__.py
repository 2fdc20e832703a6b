"""Checks before the service runs: the plan of a config, the health of this machine, a first config.

In: a config, or only an address of Kafka. Out: a plan, check results, or a config. Imports ingest and what lies below
it; not workers.
"""
