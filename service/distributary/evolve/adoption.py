"""Compares another writer's table with the topic and the config: the differences that keep the service from adopting
it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from distributary.config.table import TableSettings
from distributary.decode.renames import Renames
from distributary.decode.table_conflicts import is_another_thing
from distributary.errors import TableHalt
from distributary.evolve.diff import SchemaChanges, column_changes
from distributary.evolve.policy import tracked_columns


@dataclass(frozen=True)
class Difference:
    """A difference between the table and one that the service would have made, and its fix."""

    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what}: {self.fix}"


@dataclass(frozen=True)
class OtherTable:
    """The table: all its columns (name to Spark type), and those that must not be NULL."""

    columns: Mapping[str, str]
    required: Collection[str] = ()


def mode_refused(settings: TableSettings) -> Difference | None:
    """Why no table of this mode can be taken over; None if it can."""
    why = {
        "append": "it is unknown which of the topic's changes its rows already are, and these would be added twice",
        "history": "its rows have no positions, so it is unknown which version a change of the topic ends",
    }.get(settings.mode)
    if why is None:
        return None
    return Difference(
        f"mode: {settings.mode} ({settings.where}) can't continue with another writer's rows: {why}",
        "adopt it with mode: upsert; or give the service a new table, under another target.path or target.table, and"
        " have the connector send a snapshot",
    )


def differences(
    settings: TableSettings,
    table: OtherTable,
    service_columns: Mapping[str, str],
    sent: Sequence[Mapping[str, str]],
    key: Sequence[str],
) -> Iterator[Difference]:
    """All differences of a table whose records have these columns (see observed_columns.table_columns) and this key."""
    own = {name: kind for name, kind in table.columns.items() if name not in service_columns}
    yield from _of_service_columns(table, service_columns)
    if not key:
        yield Difference("the topic's records have no key", f"name its columns under `key` ({settings.where})")
    for name in key:
        if name not in own:
            yield Difference(
                f"the table has no column {name}, which is of the key",
                f"give it the column, with its values; or name the table's column under `rename` ({settings.where})",
            )
    yield from _of_protected(settings, own)
    yield from _of_types(settings, own, service_columns, sent, key)
    columns = {name for sent_columns in sent for name in sent_columns}
    for name in sorted(set(table.required) - columns):
        yield Difference(
            f"the column {name} must not be NULL, and no record has it",
            f"ALTER TABLE … ALTER COLUMN {name} DROP NOT NULL",
        )


def not_sent(table: OtherTable, service_columns: Collection[str], sent: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """The table's columns that no record has: rows keep their values in these columns until they change."""
    columns = {name for sent_columns in sent for name in sent_columns}
    return tuple(name for name in table.columns if name not in columns and name not in service_columns)


def _of_service_columns(table: OtherTable, service_columns: Mapping[str, str]) -> Iterator[Difference]:
    by_lower = {name.lower(): name for name in table.columns}
    for name, kind in service_columns.items():
        actual = by_lower.get(name.lower())
        if actual is not None and (actual, table.columns[actual]) != (name, kind):
            yield Difference(
                f"the table has the column {actual} {table.columns[actual]}, and the service needs its own {name}"
                f" {kind}",
                "rename or drop that column",
            )


def _of_protected(settings: TableSettings, own: Mapping[str, str]) -> Iterator[Difference]:
    renames = Renames(settings.rename)
    for key, names in (("exclude", settings.exclude), ("mask", tuple(settings.mask))):
        for name in names:
            if renames.of(name) in own:
                yield Difference(
                    f"`{key}` names {name} ({settings.where}), and the table's rows have values in it",
                    "drop the column from the table and VACUUM its files; the service adds it again where it is masked",
                )


def _of_types(
    settings: TableSettings,
    own: Mapping[str, str],
    service_columns: Collection[str],
    sent: Sequence[Mapping[str, str]],
    key: Collection[str],
) -> Iterator[Difference]:
    renames = Renames(settings.rename)
    new: dict[str, str] = {}
    wider: dict[str, str] = {}
    checked: set[tuple[str, str]] = set()
    for columns in sent:
        for name, kind in tracked_columns(settings.schema_changes, own, columns).items():
            if (name, kind) in checked:
                continue
            checked.add((name, kind))
            try:
                changes = column_changes(own, [{name: kind}], service_columns, key, renames)
            except TableHalt as halt:
                yield _of_column(halt, own, name, kind, renames)
                continue
            new.update(changes.added)
            wider.update(changes.widened)
    if settings.schema_changes == "halt" and SchemaChanges(new, wider):
        listed = ", ".join(f"{name} {kind}" for name, kind in {**new, **wider}.items())
        yield Difference(
            f"the table would get columns or wider types ({listed}), and schema_changes is halt ({settings.where})",
            "alter the table, or set schema_changes: evolve or ignore",
        )


def _of_column(halt: TableHalt, own: Mapping[str, str], name: str, sent: str, renames: Renames) -> Difference:
    if halt.code != "column-type-changed":
        return Difference(halt.message, halt.fix)
    has, source = own[name], renames.source(name)
    problem = f"the column {name} is {has} in the table, and the topic sends {sent}"
    named = f"set `columns: {{{source}: {has}}}` if all values fit it (others go to the quarantine table)"
    fix = {
        ("timestamp", "timestamp_ntz"): "set timestamps: utc for this table if its values are in UTC",
        ("timestamp_ntz", "timestamp"): f"{named}, or timestamps: ntz if the source's column has no zone",
    }.get((has, sent), "" if is_another_thing(has, sent) else named)
    return Difference(
        problem, f"{fix}; or write the column anew as {sent}" if fix else f"write the column anew as {sent}"
    )
