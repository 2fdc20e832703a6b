"""A table beside its rows: made and altered, its progress record, its log, its snapshots, its files."""
