"""Logs: to stderr, readable on a terminal, one JSON object a line elsewhere. Times are UTC.

`DISTRIBUTARY_LOG` (debug, info, warning) and `DISTRIBUTARY_LOG_FORMAT` (text, json) override this. Libraries that log
through Python's own `logging` have the same format, from warnings up. No log line holds users' data: tracebacks are
printed without the values of variables.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from itertools import islice
from typing import Any, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from distributary.controls import json_without_controls, without_controls
from distributary.errors import UsageError

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
FORMATS = ("text", "json")

_LONGEST_TEXT = 8_192  # characters
_MOST_OF_A_FIELD = 50  # names of a list
_WHOLE = ("exc_info", "exception", "stack_info", "stack")

# py4j logs every call to the JVM, deltalake its every request.
_TALKATIVE = ("py4j", "deltalake", "urllib3", "botocore")


def configure(json: bool | None = None, complete_fix: Callable[[str, str | None], str] | None = None) -> None:
    """Sets logging up for this process; may be called again.

    `json` overrides DISTRIBUTARY_LOG_FORMAT; without both, a terminal gets text and everything else JSON.
    `complete_fix` puts names into the field `fix` of an event, for the table that the event is about, if any. Raises
    UsageError if one of the two variables holds something else.
    """
    level = _choice("DISTRIBUTARY_LOG", tuple(LEVELS)) or "info"
    _choice("DISTRIBUTARY_LOG_FORMAT", FORMATS)
    if json is None:
        json = is_json()

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *([] if complete_fix is None else [_completing(complete_fix)]),
                _short,
                *_renderers(json),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("distributary").setLevel(LEVELS[level])
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)


def get_logger(name: str) -> FilteringBoundLogger:
    """The logger of a module: `get_logger(__name__)`. Events are short and fixed; varying values are keywords."""
    # Made now: when Spark reports an error it makes loggers of a class of its own for a moment, for all threads.
    logging.getLogger(name)
    return cast(FilteringBoundLogger, structlog.stdlib.get_logger(name))


def is_json() -> bool:
    """Whether logs are JSON: by DISTRIBUTARY_LOG_FORMAT, or else if standard error is no terminal."""
    wanted = os.environ.get("DISTRIBUTARY_LOG_FORMAT", "").lower()
    return wanted == "json" if wanted in FORMATS else not sys.stderr.isatty()


def wants_debug() -> bool:
    """Whether DISTRIBUTARY_LOG requests debug logs, including tracebacks of unexpected errors."""
    return os.environ.get("DISTRIBUTARY_LOG", "").lower() == "debug"


def _renderers(json: bool) -> list[Processor]:
    if json:
        return [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False),
            _harmless_json,
        ]
    colors = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    return [
        _harmless,
        structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback),
    ]


def _completing(complete_fix: Callable[[str, str | None], str]) -> Processor:
    def complete(_logger: object, _method: str, event: EventDict) -> EventDict:
        if isinstance(fix := event.get("fix"), str):
            table = event.get("table")
            event["fix"] = complete_fix(fix, table if isinstance(table, str) else None)
        return event

    return complete


def _short(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Shortens long fields, except tracebacks: records may have thousands of columns with long names."""
    return {name: value if name in _WHOLE else _shortened(value) for name, value in event.items()}


def _shortened(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]} … ({len(value) - _LONGEST_TEXT} more characters)"
    if isinstance(value, dict):
        few = {_shortened(name): _shortened(item) for name, item in islice(value.items(), _MOST_OF_A_FIELD)}
        return few if len(value) <= _MOST_OF_A_FIELD else {**few, "…": f"{len(value) - _MOST_OF_A_FIELD} more"}
    if isinstance(value, list | tuple | set | frozenset):
        some = [_shortened(item) for item in islice(value, _MOST_OF_A_FIELD)]
        return some if len(value) <= _MOST_OF_A_FIELD else [*some, f"… {len(value) - _MOST_OF_A_FIELD} more"]
    return value


def _harmless(_logger: object, _method: str, event: EventDict) -> EventDict:
    """The fields' texts with control characters written out, for terminals; a traceback keeps its lines."""
    return {name: without_controls(value) if isinstance(value, str) else value for name, value in event.items()}


def _harmless_json(_logger: object, _method: str, line: Any) -> str:
    return json_without_controls(str(line))


def _choice(variable: str, known: tuple[str, ...]) -> str | None:
    value = os.environ.get(variable, "").lower()
    if value and value not in known:
        raise UsageError("bad-environment", f"{variable} is {value!r}", f"set it to one of {', '.join(known)}")
    return value or None
