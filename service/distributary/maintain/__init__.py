"""Upkeep of tables between their batches: compaction, VACUUM, properties, the quarantine table.

In: tables and their schedules. Out: commits that change no row. Imports control, observe and what lies below.
"""
