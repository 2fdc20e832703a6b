"""Types in `columns` that differ from those of the table, while no record shows them."""

from __future__ import annotations

from collections.abc import Iterator

from distributary.decode.options import TypeSources
from distributary.decode.renames import Renames
from distributary.decode.table_conflicts import type_conflict
from distributary.preflight.plan_warning import Code, PlanWarning
from distributary.preflight.table_context import TableContext
from distributary.types.bounds import Bounds
from distributary.types.from_name import type_of_name


def types_differ(context: TableContext) -> PlanWarning | None:
    """The warning if the table can't have the types of `columns`. None if records wait: these show whether the table
    halts."""
    if context.sample.head or not (differing := list(_differing(context))):
        return None
    return PlanWarning(
        Code.TYPES_DIFFER,
        "the table has other types than `columns` names, and no record waits now: the next one with such a column halts"
        " the table (column-type-changed)",
        "undo the change of `columns`; or, to fill the table again with the new types from the records that the topic"
        " still has: distributary resume -c FILE TABLE --rebuild",
        "; ".join(differing),
    )


def _differing(context: TableContext) -> Iterator[str]:
    settings, table = context.settings, context.table_columns
    sources = TypeSources(settings.columns, {}, context.source.connector_properties, settings.timestamps)
    renames = Renames(settings.rename)
    for source_name, configured in settings.columns.items():
        [name] = renames.all_of((source_name,))
        if name not in table or source_name in settings.mask or source_name in settings.exclude:
            continue
        wire = sources.in_zone(type_of_name(configured, sources.properties, Bounds()), configured).spark
        if type_conflict(name, table[name], wire, renames, is_key=name in context.key):
            yield f"{name} is {table[name]} in the table, and {configured} in `columns`"
