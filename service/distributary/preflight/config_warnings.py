"""Warnings about a config as a whole: settings of its source, keys without effect, entries that match no table."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from distributary.config import Config
from distributary.config.notices import keys_without_effect, notices
from distributary.preflight.plan_warning import Code, PlanWarning
from distributary.preflight.table_context import TableContext
from distributary.preflight.table_warnings import SENDS_TRUNCATES, skipped_operations

_NAMES = {"c": "inserts", "u": "updates", "d": "deletes"}


def config_warnings(config: Config, contexts: Collection[TableContext], matched: Collection[str]) -> list[PlanWarning]:
    """The warnings. `contexts`: those of all tables; `matched`: the `match` of each entry that applies to a table."""
    no_effect = [
        PlanWarning(Code.KEY_WITHOUT_EFFECT, text, "take the key out of the config")
        for text in keys_without_effect(config)
    ]
    return [*_skipped(config, contexts), *_entries(config, matched), *no_effect]


def _skipped(config: Config, contexts: Iterable[TableContext]) -> list[PlanWarning]:
    skipped = skipped_operations(config.source)
    warnings = []
    lost = [name for op, name in _NAMES.items() if op in (skipped or ())]
    if lost:
        warnings.append(
            PlanWarning(
                Code.CHANGES_SKIPPED,
                f"skipped.operations makes the connector skip {', '.join(lost)}: no table can equal its source",
                "take c, u and d out of skipped.operations in the connector",
            )
        )
    sends = [s for s in contexts if s.connector in SENDS_TRUNCATES and not s.is_unwrapped]
    has_truncate = any(True for context in sends for _ in context.with_op("t"))
    if sends and not has_truncate and (skipped is None or "t" in skipped):
        why = (
            "skipped.operations makes the connector skip truncates"
            if skipped
            else "connectors skip truncates by default, and the config does not say that this one sends them"
        )
        warnings.append(
            PlanWarning(
                Code.TRUNCATES_SKIPPED,
                f"{why}: rows that a TRUNCATE removes at the source stay in the tables",
                "set skipped.operations: none in the connector, and the same under source.connector_properties",
            )
        )
    return warnings


def _entries(config: Config, matched: Collection[str]) -> list[PlanWarning]:
    never = notices(config)
    warnings = [
        PlanWarning(Code.ENTRY_NEVER_COUNTS, text, "put the entry before that one, or take it out") for text in never
    ]
    for i, rule in enumerate(config.tables):
        place = config.place_of(i)
        if rule.match in matched or any(text.startswith(f"{place}: ") for text in never):
            continue
        warnings.append(
            PlanWarning(
                Code.ENTRY_WITHOUT_TOPIC,
                f"{place}: {rule.match!r} matches no existing topic",
                "check the spelling; topics that are created later are added without a restart",
            )
        )
    return warnings
