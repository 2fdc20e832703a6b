"""Delta tables written by location: rows are found by an index of their keys, and committed as actions of Delta's log.

`writer.TableWriter` is the face. Behind it, in the order of a write: `snapshot` (the live files of a version),
`key_codec` and `key_index` (keys to places), `vectors` and `data_file` (what is written), `plan_write` (which actions
follow), `commit` (one version, or none). Two modules are in Spark's JVM: `transaction` commits, `checkpoint` keeps the
log short between writes.
"""
