"""A Delta table without its rows: creating and altering it, its log, its layout, OPTIMIZE and VACUUM.

In: columns and properties. Out: heads and commits. Imports progress, delta and below.
"""
