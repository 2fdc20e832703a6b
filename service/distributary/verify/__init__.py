"""Compares tables with their topics or with the live source. Reads only, except for a temporary replay of the topic."""
