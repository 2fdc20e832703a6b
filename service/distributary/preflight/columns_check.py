"""Whether the columns that the config names exist."""

from __future__ import annotations

from distributary.config import Config
from distributary.config.table import named_columns
from distributary.errors import TransientError
from distributary.evolve.unknown_columns import CODE, FIX
from distributary.preflight.check_result import Doubtful, Healthy
from distributary.preflight.plan import plan
from distributary.preflight.plan_warning import Code


def columns_are_known(config: Config) -> Healthy | Doubtful:
    """Reads no topic where the config names no column."""
    if not any(named_columns(rule) for rule in (config.defaults, *config.tables)):
        return Healthy("the config names no column")
    try:
        tables = plan(config).tables
    except TransientError as error:
        return Doubtful(error.code, error.message, error.fix)
    found = [
        f"{table.table}: {concern.detail}"
        for table in tables
        for concern in table.warnings
        if concern.code is Code.UNKNOWN_COLUMN
    ]
    if found:
        return Doubtful(CODE, "\n           ".join(found), FIX)
    return Healthy("the tables have the columns that the config names")
