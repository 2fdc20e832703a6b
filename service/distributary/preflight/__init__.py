"""Checks before the service runs: the plan of a config, the health of this machine, a first config."""
