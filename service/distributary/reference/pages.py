"""Which pages are made, and of what."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from distributary.config import schema
from distributary.reference import commands, config, errors, metrics, types

PAGES: Mapping[str, Callable[[], str]] = {
    "docs/cli.md": commands.as_markdown,
    "docs/config.md": config.as_markdown,
    "docs/errors.md": errors.as_markdown,
    "service/distributary/observe/web/errors.json": errors.as_json,
    "docs/metrics.md": metrics.as_markdown,
    "docs/types.md": types.as_markdown,
    "config/schema.json": schema.text,
}
"""By path from the repository's root."""
