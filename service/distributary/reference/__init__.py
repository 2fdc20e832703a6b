"""Pages of the docs that are made from the code, so that they can't say anything else: `make docs` writes them."""
