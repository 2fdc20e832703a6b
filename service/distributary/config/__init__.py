"""The config: what users write, read once at the start into frozen values.

`load(path)` gives a `Config` or raises `ConfigError` with every fault at once. Nothing in here imports pyspark.
"""

from distributary.config.load import load
from distributary.config.model import Config
from distributary.config.table import TableSettings

__all__ = ["Config", "TableSettings", "load"]
