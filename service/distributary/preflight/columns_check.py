"""Checks whether the columns that the config names exist."""

from __future__ import annotations

from distributary.config import Config
from distributary.config.table import named_columns
from distributary.errors import TransientError
from distributary.evolve.unknown_columns import CODE, FIX
from distributary.preflight.check_result import CheckPassed, CheckWarning
from distributary.preflight.plan import plan
from distributary.preflight.plan_warning import Code


def columns_are_known(config: Config) -> CheckPassed | CheckWarning:
    """Warns about columns that exist neither in the table nor in its records. Reads no topic if the config names no
    column."""
    if not any(named_columns(rule) for rule in (config.defaults, *config.tables)):
        return CheckPassed("the config names no column")
    try:
        tables = plan(config).tables
    except TransientError as error:
        return CheckWarning(error.code, error.message, error.fix)
    problems = [
        f"{table.table}: {warning.detail}"
        for table in tables
        for warning in table.warnings
        if warning.code is Code.UNKNOWN_COLUMN
    ]
    if problems:
        return CheckWarning(CODE, "\n           ".join(problems), FIX)
    return CheckPassed("the tables have the columns that the config names")
