"""Files by which operators and other drivers control the service: the lease, resume requests, pauses, halts.

In: small files of the lake. Out: requests, pauses and the lease's owner. Imports observe, storage and below.
"""
