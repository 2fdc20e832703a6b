"""Files by which operators and other drivers control the service: lease, resume requests, pauses, halts.

In: small files of the lake. Out: requests, pauses and the lease's owner. Imports ingest, storage and what lies below
them.
"""
