"""Pages of the docs that are made from the code, so that they can't contradict it: `make docs` writes them.

In: the code. Out: Markdown and JSON. May import everything.
"""
