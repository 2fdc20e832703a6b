"""The config: the YAML file, read once at the start into frozen values.

In: a file. Out: a `Config`, or a `ConfigError` with every fault at once. Imports decode for connectors and types; no
Spark.
"""

from distributary.config.load import load
from distributary.config.model import Config
from distributary.config.table import TableSettings

__all__ = ["Config", "TableSettings", "load"]
