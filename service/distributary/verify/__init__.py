"""Whether tables are what their topics say: the expected rows, computed anew, against those of the lake. Only read."""
