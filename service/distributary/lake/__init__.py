"""A Delta table without its rows: created and altered, its log, its layout, OPTIMIZE and VACUUM.

In: columns and properties. Out: heads and commits. Imports progress, delta and what lies below them.
"""
