"""The settings of one table: its entry of `tables`, over `defaults`, over the service's own defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from pydantic import SecretStr

from distributary.config import maintenance
from distributary.config.maintenance import Maintenance
from distributary.config.scalars import GLOB
from distributary.config.table_rule import (
    ColumnDefaults,
    Deletes,
    FileLayout,
    Keyless,
    Mode,
    SchemaChanges,
    TableDefaults,
    TableRule,
    Timestamps,
    Truncate,
)


@dataclass(frozen=True)
class TableSettings:
    """The settings of one table: its rule, over the defaults, over the service's own defaults.

    `match` is the rule's pattern, `where` its `file:line` (empty if the config was not read from a file).
    `own_names` are the names of columns that the rule itself has, and not the defaults, by their key (`mask`,
    `exclude`, `columns`, `rename`); `name_places` the `file:line` of each such name, as far as known.
    """

    match: str
    where: str = ""
    mode: Mode = "upsert"
    deletes: Deletes = "hard"
    truncate: Truncate = "apply"
    layout: FileLayout = "auto"
    key: tuple[str, ...] = ()
    keyless: Keyless = "halt"
    merge_sources: bool = False
    timestamps: Timestamps = "ntz"
    schema_changes: SchemaChanges = "evolve"
    column_defaults: ColumnDefaults = "null"
    columns: dict[str, str] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    rename: dict[str, str] = field(default_factory=dict)
    transaction_columns: bool = False
    epoch: int = 0
    paused: bool = False
    properties: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    mask: dict[str, str] = field(default_factory=dict)
    salt: SecretStr | None = None
    maintenance: Maintenance = field(default_factory=Maintenance)
    own_names: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)
    name_places: Mapping[tuple[str, str], str] = field(default_factory=dict, compare=False)

    @property
    def is_for_one_table(self) -> bool:
        """Whether the rule names one table, without a pattern."""
        return not GLOB.search(self.match)

    @property
    def fills_defaults(self) -> bool:
        """Whether older rows get the default of a column that is added. A row of an append table stays as it is."""
        return self.column_defaults == "fill" and self.mode != "append"

    @property
    def has_transactions(self) -> bool:
        """Whether rows have the columns of their change's transaction."""
        return self.transaction_columns and self.mode != "upsert"

    @property
    def marks_deleted(self) -> bool:
        """Whether rows that are gone from the source may stay in the table, marked (`__deleted`)."""
        return self.mode == "upsert" and "soft" in (self.deletes, self.truncate)


def _names(defaults: dict[str, str], rule: dict[str, str]) -> dict[str, str]:
    """The rule's names win: a default that gives one of these names to another column is left out."""
    used = {name.lower() for name in rule.values()}
    return {**{source: name for source, name in defaults.items() if name.lower() not in used}, **rule}


def equal_settings(one: TableSettings, other: TableSettings) -> bool:
    """Whether both are equal, except for the entry that they come from."""
    return replace(one, match="", where="") == replace(other, match="", where="")


def named_columns(rule: TableDefaults | TableSettings) -> list[tuple[str, str]]:
    """The names of columns under `mask`, `exclude`, `columns` and `rename`, each with its key."""
    named = {"mask": rule.mask, "exclude": rule.exclude, "columns": rule.columns, "rename": rule.rename}
    return [(key, name) for key, names in named.items() for name in names or ()]


def resolve(
    rule: TableRule,
    defaults: TableDefaults,
    where: str = "",
    salt: SecretStr | None = None,
    name_places: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> TableSettings:
    """The settings of the tables that `rule` matches. `salt` counts where something is hashed.

    A key of the rule replaces that of the defaults, in `maintenance` too. `columns`, `exclude`, `rename`, `mask` and
    `properties` are added to those of the defaults, so that a rule which excludes another column does not lose a
    default such as `exclude: [ssn]`. A rule with partition_by or cluster_by replaces both of the defaults.
    """
    mask: dict[str, str] = {**(defaults.mask or {}), **(rule.mask or {})}
    layout = defaults if rule.partition_by is None and rule.cluster_by is None else rule
    return TableSettings(
        match=rule.match,
        where=where,
        mode=rule.mode or defaults.mode or "upsert",
        deletes=rule.deletes or defaults.deletes or "hard",
        truncate=rule.truncate or defaults.truncate or "apply",
        layout=rule.layout or defaults.layout or "auto",
        key=rule.key if rule.key is not None else defaults.key or (),
        keyless=rule.keyless or defaults.keyless or "halt",
        merge_sources=rule.merge_sources if rule.merge_sources is not None else defaults.merge_sources or False,
        timestamps=rule.timestamps or defaults.timestamps or "ntz",
        schema_changes=rule.schema_changes or defaults.schema_changes or "evolve",
        column_defaults=rule.column_defaults or defaults.column_defaults or "null",
        columns={**(defaults.columns or {}), **(rule.columns or {})},
        exclude=tuple(dict.fromkeys((*(defaults.exclude or ()), *(rule.exclude or ())))),
        rename=_names(defaults.rename or {}, rule.rename or {}),
        transaction_columns=rule.transaction_columns
        if rule.transaction_columns is not None
        else defaults.transaction_columns or False,
        epoch=rule.epoch if rule.epoch is not None else defaults.epoch or 0,
        paused=rule.paused if rule.paused is not None else defaults.paused or False,
        properties={**(defaults.properties or {}), **(rule.properties or {})},
        partition_by=layout.partition_by or (),
        cluster_by=layout.cluster_by or (),
        mask=mask,
        salt=salt if "hash" in mask.values() else None,
        maintenance=maintenance.resolve(rule.maintenance, defaults.maintenance),
        own_names=frozenset(named_columns(rule)),
        name_places=name_places,
    )
