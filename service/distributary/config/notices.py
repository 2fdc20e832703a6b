"""Valid settings of a config that are probably mistakes."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from distributary.config.model import Config

_MORE_THAN_STARS = re.compile(r"[?\[]")


def notices(config: Config) -> list[str]:
    """A sentence for each rule that can't match, because an earlier rule matches the same tables. Included files come
    last, so this happens easily."""
    texts = []
    for i, rule in enumerate(config.tables):
        earlier = next((j for j in range(i) if _covers(config.tables[j].match, rule.match)), None)
        if earlier is not None:
            texts.append(
                f"{config.place_of(i)}: {rule.match!r} never counts: {config.tables[earlier].match!r} in "
                f"{config.place_of(earlier)} comes first and matches the same tables"
            )
    return texts


def keys_without_effect(config: Config) -> list[str]:
    """A sentence for each entry with a key that meant something to an earlier version, and is still accepted."""
    sections = [("defaults", config.defaults), *((config.place_of(i), rule) for i, rule in enumerate(config.tables))]
    return [
        f"{place}: `commit` has no effect any more, as one engine commits to all tables: take it out"
        for place, section in sections
        if section.commit is not None
    ]


def _covers(pattern: str, other: str) -> bool:
    """Whether `pattern` matches all that `other` matches, as far as that is plain to see.

    A `*` of `other` can only be taken by a `*` of `pattern`, so matching the text of `other` is proof enough.
    """
    return not _MORE_THAN_STARS.search(pattern) and fnmatchcase(other, pattern)
