"""What an operator may ask of a table, and which halts ask for it."""

from __future__ import annotations

import shlex
from enum import Enum


class ResumeAction(str, Enum):
    """What the operator accepts, so that the table continues."""

    NOTHING = "nothing"
    """The table is tried again."""
    LOSS = "loss"
    """Records that Kafka no longer has are passed over."""
    RESET = "reset"
    """The topic is another one now, or has lost its end: it is read from its start, on top of the rows that are
    there."""
    REBUILD = "rebuild"
    """All rows go, and the table is filled again from the start of its topic."""
    REPLAY = "replay"
    """Its records in quarantine are applied again."""


ASKED_BY = {
    "records-lost": ResumeAction.LOSS,
    "topic-recreated": ResumeAction.RESET,
    "topic-shorter": ResumeAction.RESET,
    "offsets-began-anew": ResumeAction.REBUILD,
}
"""Halts, by code, that nothing but this (or a rebuild) ends."""


def option(accept: ResumeAction | None) -> str:
    """How `distributary resume` is asked for it, behind a space; empty for what needs no option."""
    if accept is None or accept is ResumeAction.NOTHING:
        return ""
    return " --rebuild" if accept is ResumeAction.REBUILD else f" --accept-{accept.value}"


PAUSED_IN_CONFIG = "paused: true in the config"
PAUSED_BY_COMMAND = "distributary pause"
ALL_TABLES = "of all tables"


def unpause(why: str, table: str, config_file: str = "FILE") -> str | None:
    """What ends the pause of a table, as a line for a shell; None where the config says it. `why`: what is shown of the
    pause."""
    if not why.startswith(PAUSED_BY_COMMAND):
        return None
    of = "" if why.startswith(f"{PAUSED_BY_COMMAND} {ALL_TABLES}") else f" {shlex.quote(table)}"
    return f"distributary unpause -c {shlex.quote(config_file)}{of}"
