"""The progress of a running command: a line on the terminal, removed when the result is printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class Doing:
    """Call it with the name of the current step."""

    def __init__(self, line: Progress) -> None:
        self._line = line
        self._task = line.add_task("", total=None)

    def __call__(self, doing: str) -> None:
        self._line.update(self._task, description=doing)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Takes the line away for as long as a part of the result is printed."""
        self._line.stop()
        try:
            yield
        finally:
            self._line.start()


@contextmanager
def progress(doing: str = "") -> Iterator[Doing]:
    """Shows the current step and its duration on stderr, if that is a terminal. `redirect_stdout` is off, because
    otherwise a result that is redirected to a file would be printed on the terminal.
    """
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as line:
        status = Doing(line)
        status(doing)
        yield status
