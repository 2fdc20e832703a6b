"""What operators and other drivers say to the service: the lease, resume requests, pauses, halts.

In: small files of the lake. Out: what a worker may do. Imports observe, storage and what lies below.
"""
