"""The specification and the memory of a table before a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from distributary.apply.values import no_values
from distributary.apply.versions import Aliases
from distributary.rules.state import RuleSettings, RulesState
from distributary.types.column_default import ColumnDefault


@dataclass(frozen=True)
class TableSpec:
    """The specification of a table: its topic, its columns and those of its key, and the rules' settings. `defaults`:
    values of older rows in columns that were added later. `transactions`: rows have the columns of their
    transaction."""

    rules: RuleSettings
    topic: str
    row: pa.StructType
    key: pa.StructType
    defaults: Mapping[str, ColumnDefault] = field(default_factory=dict)
    transactions: bool = False


@dataclass
class Memory:
    """The memory of a table, which is not in its rows: the rules' state, the values that it names, and (`mode:
    history`) which version each of its records belongs to."""

    state: RulesState
    values: pa.Table
    aliases: Aliases = field(default_factory=dict)


def first_memory(spec: TableSpec, partitions: int) -> Memory:
    """The memory of a table that has no row yet."""
    return Memory(RulesState(partitions), no_values(spec.row))
