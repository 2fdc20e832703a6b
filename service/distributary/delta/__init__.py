"""Delta tables whose rows are replaced by their address, which is a data file and a row's number in it: an index of the
keys finds them, and each commit is made of actions of Delta's log.

In: rows, keys to remove, a progress record. Out: one commit, or none. Imports errors and launch alone.

`writer.TableWriter` is the face. Behind it, in the order of a write: `table_reader` and `snapshot` (the live files of a
version), `key_codec` and `key_index` (keys to rows), `vectors` and `data_file` (new files), `plan_write` (actions),
`commit` (one version, or none). `transaction` commits and `checkpoint` shortens the log, both through Spark's JVM.
"""
