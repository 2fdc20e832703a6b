"""Fields of JSON that were renamed. For one release they are also there under their former names, which
docs/versions.md lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FORMER_NAMES = {
    "target_offsets": "goal_offsets",
    "ambiguous_deletes": "undecided",
    "orphaned_rows": "ghosts",
    "removed_orphaned_rows": "removed_ghosts",
    "possible_types": "guesses",
    "skipped_topics": "passed_over",
}


def with_former_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields; renamed fields also under their former names."""
    return {**fields, **{FORMER_NAMES[name]: value for name, value in fields.items() if name in FORMER_NAMES}}
