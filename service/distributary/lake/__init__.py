"""A Delta table beside its rows: made and altered, its log, its layout, OPTIMIZE and VACUUM.

In: columns and properties. Out: heads and commits. Imports progress, delta and what lies below.
"""
