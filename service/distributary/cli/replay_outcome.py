"""Shows what `quarantine replay --wait` waits for: the records that the service applied."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from distributary.cli import output
from distributary.cli.progress import progress
from distributary.cli.words import count, duration
from distributary.config import Config
from distributary.halt_actions import ResumeAction

if TYPE_CHECKING:
    from distributary.control.resume_requests import WrittenRequest


def show_outcome(
    config: Config,
    config_file: Path,
    written: WrittenRequest,
    before: datetime | None,
    timeout: float,
    output_format: str,
) -> int:
    """Waits for the service at most `timeout` seconds and shows what it applied. Returns the exit code: 1 if it did not
    handle the request in time, or the table is halted. `before` as for await_replay."""
    from distributary.control.halts import read_halts
    from distributary.control.resume_requests import is_open
    from distributary.quarantine.await_replay import await_replay

    with progress("waiting for the service"):
        outcome = await_replay(config, written.table, before, lambda: is_open(config, written.request), timeout)
    halt = read_halts(config).get(written.request.topic) if outcome.handled else None
    if output_format == "json":
        action = ResumeAction.REPLAY.value
        error = None if halt is None else {name: halt[name] for name in ("code", "message", "fix")}
        output.show_json({"table": written.table, "action": action, **outcome.__dict__, "error": error})
    elif halt is not None:
        output.show_text(f"{written.table} is halted: [{halt['code']}] {halt['message']}", style="red")
        output.show_next(output.command_line("status", config_file), "how to end the halt")
    elif not outcome.handled:
        text = (
            f"{written.table}: no service handled the request within {duration(timeout)}. It stays, and is handled once"
            " the service runs, the table is not paused and its batch in flight is done"
        )
        output.show_text(text, style=output.WARNING)
        output.show_next(output.command_line("status", config_file), "the table's state")
    elif not (outcome.applied or outcome.waiting):
        output.show_text(f"{written.table}: no record waited in quarantine", style="green")
    else:
        left = f", {count(outcome.waiting, 'record')} still can't be applied" if outcome.waiting else ", none is left"
        output.show_text(f"{written.table}: {count(outcome.applied, 'record')} applied{left}", style="green")
        if outcome.waiting:
            command = output.command_line("quarantine list", config_file, written.table)
            output.show_next(command, "which records are left, and why")
    return 1 if halt is not None or not outcome.handled else 0
