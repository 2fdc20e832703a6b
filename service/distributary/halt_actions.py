"""The actions by which an operator ends a halt, and which halt needs which action; those that pause a table. A restart
of the service and a change of the table's config try a halted table again, too. `distributary resume` leaves a request,
workers/resume.py hands it to the table, workers/topic_check.py commits its effect (workers/quarantine_replay.py that of
REPLAY). A table that is not ours yet is taken over by `resume --adopt` (workers/adopt.py)."""

from __future__ import annotations

import shlex
from enum import Enum


class ResumeAction(str, Enum):
    """The action by which an operator lets a table continue."""

    RETRY = "retry"
    """Try again."""
    LOSS = "loss"
    """Skip records that Kafka no longer has."""
    RESET = "reset"
    """Read a topic that was created again, or has lost its end, from its start, on top of the existing rows."""
    REBUILD = "rebuild"
    """Remove all rows, and fill the table again from the start of its topic."""
    REPLAY = "replay"
    """Apply the table's records in quarantine again."""


NEEDED_ACTIONS = {
    "records-lost": ResumeAction.LOSS,
    "topic-recreated": ResumeAction.RESET,
    "topic-shorter": ResumeAction.RESET,
    "offsets-began-anew": ResumeAction.REBUILD,
}
"""By code: halts that only this action or a rebuild ends. All others are retried once the cause is fixed; where it
can't be (`key-changed`, `offsets-repeat`, `table-of-older-version`), they halt again until a rebuild."""


def resume_option(action: ResumeAction | None) -> str:
    """The option of `distributary resume` for the action, with a space in front; empty if it needs none."""
    if action is None or action is ResumeAction.RETRY:
        return ""
    return " --rebuild" if action is ResumeAction.REBUILD else f" --accept-{action.value}"


def with_names(fix: str, *, table: str | None = None, config_file: str | None = None) -> str:
    """The fix of an error with these names in its commands, in place of TABLE and FILE."""
    if table is not None:
        fix = fix.replace("-c FILE TABLE", f"-c FILE {shlex.quote(table)}")
    return fix if config_file is None else fix.replace("-c FILE", f"-c {shlex.quote(config_file)}")


PAUSED_IN_CONFIG = "paused: true in the config"
PAUSED_BY_COMMAND = "distributary pause"
ALL_TABLES = "of all tables"


def unpause_command(why: str, table: str, config_file: str = "FILE") -> str | None:
    """The command that ends the pause of a table; None if the config pauses it. `why`: the pause's reason in the
    status."""
    if not why.startswith(PAUSED_BY_COMMAND):
        return None
    of = "" if why.startswith(f"{PAUSED_BY_COMMAND} {ALL_TABLES}") else f" {shlex.quote(table)}"
    return f"distributary unpause -c {shlex.quote(config_file)}{of}"
