"""What is to be said of a config as a whole: its source's settings, and entries that no table follows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from distributary.config import Config
from distributary.config.notices import keys_without_effect, notices
from distributary.preflight.plan_warning import Code, Concern
from distributary.preflight.table_context import Scene
from distributary.preflight.table_warnings import SENDS_TRUNCATES, skipped_operations

_NAMES = {"c": "inserts", "u": "updates", "d": "deletes"}


def overall(config: Config, scenes: Collection[Scene], matched: Collection[str]) -> list[Concern]:
    """`scenes` are those of all tables, `matched` the entries (by their `match`) that tables follow."""
    no_effect = [
        Concern(Code.KEY_WITHOUT_EFFECT, text, "take the key out of the config") for text in keys_without_effect(config)
    ]
    return [*_skipped(config, scenes), *_entries(config, matched), *no_effect]


def _skipped(config: Config, scenes: Iterable[Scene]) -> list[Concern]:
    skipped = skipped_operations(config.source)
    found = []
    lost = [name for op, name in _NAMES.items() if op in (skipped or ())]
    if lost:
        found.append(
            Concern(
                Code.CHANGES_SKIPPED,
                f"skipped.operations has the connector leave out {', '.join(lost)}: no table can equal its source",
                "take c, u and d out of skipped.operations in the connector",
            )
        )
    sends = [s for s in scenes if s.connector in SENDS_TRUNCATES and not s.is_unwrapped]
    seen = any(True for scene in sends for _ in scene.with_op("t"))
    if sends and not seen and (skipped is None or "t" in skipped):
        why = (
            "skipped.operations has the connector leave out truncates"
            if skipped
            else "connectors leave out truncates unless skipped.operations says otherwise; the config does not tell"
        )
        found.append(
            Concern(
                Code.TRUNCATES_SKIPPED,
                f"{why}: rows that a TRUNCATE takes at the source stay in the tables",
                "set skipped.operations: none in the connector, and the same under source.connector_properties",
            )
        )
    return found


def _entries(config: Config, matched: Collection[str]) -> list[Concern]:
    never = notices(config)
    found = [Concern(Code.ENTRY_NEVER_COUNTS, text, "put the entry before that one, or take it out") for text in never]
    for i, rule in enumerate(config.tables):
        place = config.place_of(i)
        if rule.match in matched or any(text.startswith(f"{place}: ") for text in never):
            continue
        found.append(
            Concern(
                Code.ENTRY_WITHOUT_TOPIC,
                f"{place}: {rule.match!r} matches no topic that there is now",
                "look at the spelling; topics that come later are added without a restart",
            )
        )
    return found
