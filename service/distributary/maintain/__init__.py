"""Maintenance of tables between their batches: compaction, VACUUM, properties, the quarantine table.

In: tables and their schedules. Out: commits that change no row. Imports observe, quarantine and what lies below
them.
"""
