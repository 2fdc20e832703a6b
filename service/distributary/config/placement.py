"""Checks that tables, checkpoint and quarantine are in different directories.

A checkpoint inside of a table is listed by every reader of the table and removed by VACUUM; a table inside of the
checkpoint is gone when an operator deletes the checkpoint, which is allowed at any time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from distributary.config.problem import Problem
from distributary.config.scalars import GLOB, inside

PLACEHOLDERS = ("database", "schema", "table")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def template_problem(template: str) -> Problem | None:
    """The problem with `target.table`, if any."""
    names = _PLACEHOLDER.findall(template)
    rest = _PLACEHOLDER.sub("x", template)
    if unknown := [name for name in names if name not in PLACEHOLDERS]:
        fix = "{database}, {schema} and {table} may be used"
        return Problem("bad-table-template", f"{{{unknown[0]}}} is not known here", fix)
    if "{" in rest or "}" in rest:
        return Problem("bad-table-template", "a brace has no partner", 'write "{schema}/{table}"')
    if "table" not in names:
        fix = 'write "{schema}/{table}"'
        return Problem("bad-table-template", "{table} is missing, so that tables would share one path", fix)
    if any(part in ("", ".", "..") for part in rest.split("/")):
        return Problem("bad-table-template", "must be a path below target.path without `.` and `..`")
    return None


def schemas_collide(template: str, matches: Iterable[str]) -> bool:
    """Whether tables of two schemas could get one path: `{schema}` is left out and not all rules name one schema."""
    if "{schema}" in template:
        return False
    schemas = {match.partition(".")[0] for match in matches}
    return len(schemas) > 1 or any(GLOB.search(schema) for schema in schemas)


def checkpoint_problem(checkpoint: str, target: str, template: str) -> Problem | None:
    """The problem with the checkpoint's path, if any, given `target.path` and `target.table`."""
    fix = "give the checkpoint a directory of its own beside the tables"
    if inside(checkpoint, target) == ():
        return Problem("checkpoint-place", "the checkpoint can't be target.path itself", fix)
    if _in_table(checkpoint, target, template):
        return Problem("checkpoint-place", "the checkpoint lies inside of a table", fix)
    if inside(target, checkpoint) is not None:
        return Problem("checkpoint-place", "target.path lies inside of the checkpoint", fix)
    return None


def tables_in_checkpoint(matches: Iterable[str], checkpoint: str, target: str, template: str) -> Iterator[Problem]:
    """The problems of entries, by their `match`, whose schema names a directory that is the checkpoint's."""
    below = inside(checkpoint, target) or ()
    for i, match in enumerate(matches):
        schema, _, table = match.partition(".")
        path = template.replace("{database}", "*").replace("{schema}", schema).replace("{table}", table).split("/")
        if below and tuple(path[: len(below)]) == below and not any(map(GLOB.search, below)):
            yield Problem(
                "checkpoint-place",
                "tables of this entry would lie inside of the checkpoint, which may be deleted at any time",
                "give the checkpoint a directory of its own beside target.path",
                (i, "match"),
            )


def quarantine_problem(quarantine: str, checkpoint: str | None, target: str, template: str) -> Problem | None:
    """The problem with the quarantine table's path, if any."""
    fix = "leave quarantine.path out: <target.path>/_quarantine is a good path"
    if inside(target, quarantine) is not None:
        return Problem("quarantine-place", "target.path lies inside of the quarantine table", fix)
    if _in_table(quarantine, target, template):
        return Problem("quarantine-place", "the quarantine table lies inside of another table", fix)
    if checkpoint is not None and _overlap(quarantine, checkpoint):
        return Problem("quarantine-place", "the quarantine table and the checkpoint overlap", fix)
    return None


def _overlap(one: str, other: str) -> bool:
    return inside(one, other) is not None or inside(other, one) is not None


def _in_table(location: str, target: str, template: str) -> bool:
    """Names that start with `_` or `.` right below `target.path` are no schemas: Delta readers pass over them too."""
    below = inside(location, target)
    parts = template.split("/")
    if not below or len(below) < len(parts) or (below[0].startswith(("_", ".")) and template.startswith("{")):
        return False
    return all(_pattern(part).fullmatch(name) for part, name in zip(parts, below, strict=False))


def _pattern(part: str) -> re.Pattern[str]:
    literals = _PLACEHOLDER.split(part)[::2]
    return re.compile(".+".join(map(re.escape, literals)))
