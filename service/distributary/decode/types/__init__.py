"""Types of columns: how each comes on the wire, and which Arrow type it becomes. One module per family."""
