"""docs/errors.md: every error that the service raises, read from where it is raised."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from distributary import errors
from distributary.reasons import REASONS

_HEAD = """\
# Errors

Every error has a code, a message with the place of the fault, and a fix. `make docs` writes this page from the code.
Words in braces stand for names, places and numbers, FILE and TABLE in commands for your config and table; an error
never shows values of your rows. Faults in a config are not listed: `distributary validate` shows all of them at
once, each with its file, line and fix. Warnings of
`distributary plan` are in [plan-warnings.md](plan-warnings.md), failures that the service handles in
[failure-cases.md](failure-cases.md).
"""
_KINDS = {
    "TableHalt": (
        "Halted tables",
        "The table stays unchanged, all others continue. `distributary status` shows it; see [halts.md](halts.md).",
    ),
    "verify": (
        "Tables that can't be compared",
        "`distributary verify` shows the code and exits with 1; the table continues. See [verify.md](verify.md).",
    ),
    "TransientError": (
        "Temporary errors",
        "The work is tried again with growing pauses; nothing is lost. The table is `retrying` meanwhile.",
    ),
    "SetupError": ("This machine", "Something that the command needs is missing. The command exits with 2."),
    "UsageError": ("Usage", "The command line or the config is wrong. The command exits with 2."),
    "AlreadyRunning": ("A second driver", "Another driver runs this config. The command exits with 3."),
}
_NOT_HERE = ("demo", "failpoints.py")  # errors of the demo, and deliberate ones
_REASONS_TEXT = (
    "The record goes to quarantine with this reason, and all others are applied: see [quarantine.md](quarantine.md)."
)
_LINK = re.compile(r"\[([^]]*)\]\(([^)]*)\)")
_QUARANTINE = f"""\
## Records in quarantine

{_REASONS_TEXT}

| reason | meaning |
| --- | --- |"""
_OPEN = "{…}"


@dataclass(frozen=True, order=True)
class Raised:
    """An error as a module raises it. `{…}` stands for parts that are only known at run time."""

    code: str
    message: str
    fix: str
    kind: str


def as_markdown() -> str:
    """The page."""
    lines = [_HEAD]
    for kind, (title, text) in _KINDS.items():
        lines += [f"## {title}", "", text, "", "| code | message | what to do |", "| --- | --- | --- |"]
        lines += [_row(f"`{one.code}`", one.message, one.fix) for one in raised_by_service() if one.kind == kind]
        lines.append("")
    lines.append(_QUARANTINE)
    lines += [_row(f"`{reason.code}`", reason.message) for reason in REASONS]
    return "\n".join(lines) + "\n"


def as_json() -> str:
    """The errors as JSON, for the service's own page: groups of a `title`, a `text`, and `errors`, which has by code
    the messages with their fixes."""
    raised = raised_by_service()
    groups = [(title, text, [one for one in raised if one.kind == kind]) for kind, (title, text) in _KINDS.items()]
    reasons = [Raised(reason.code, reason.message, "", "") for reason in REASONS]
    groups.append(("Records in quarantine", _REASONS_TEXT, reasons))
    groups_as_json = []
    for title, text, raised_ones in groups:
        by_code: dict[str, list[dict[str, str]]] = {}
        for one in raised_ones:
            words = {"message": " ".join(one.message.split()), "fix": " ".join(one.fix.split())}
            by_code.setdefault(one.code, []).append(words)
        groups_as_json.append({"title": title, "text": _LINK.sub(r"docs/\2", text), "errors": by_code})
    return json.dumps(groups_as_json, indent=1, ensure_ascii=False) + "\n"


@cache
def raised_by_service() -> tuple[Raised, ...]:
    """The errors of the service, in their order. Reading all its modules takes a second, so that it is done once."""
    return tuple(sorted(set(raised(Path(errors.__file__).parent))))


def raised(package: Path) -> Iterator[Raised]:
    """The errors of all modules whose code is a text in the module. Those handed on from elsewhere are not."""
    paths = [path for path in sorted(package.rglob("*.py")) if not set(_NOT_HERE) & {*path.relative_to(package).parts}]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    kinds = {**{kind: kind for kind in _KINDS}, **_narrower(trees.values())}
    for path, tree in trees.items():
        parts = path.relative_to(package).parts
        constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds:
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                code, message, fix = (_text(one, constants) for one in [*given, *[ast.Constant("")] * 3][:3])
                if _OPEN not in code:
                    of_verify = parts[0] == "verify" and node.func.id == "TableHalt"
                    yield Raised(code, message, fix, "verify" if of_verify else kinds[node.func.id])


def _narrower(trees: Iterable[ast.Module]) -> dict[str, str]:
    """The classes that modules derive from a kind of error, each with its kind."""
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    return {
        one.name: base.id for one in classes for base in one.bases if isinstance(base, ast.Name) and base.id in _KINDS
    }


def _text(node: ast.expr, constants: dict[str, ast.expr]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name) and node.id in constants:
        return _text(constants[node.id], {})
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, constants) for part in node.values)
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        return f"{{{node.value.id.lower().strip('_')}}}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, constants) + _text(node.right, constants)
    return _OPEN


def _escaped(cell: str) -> str:
    return cell.replace("|", "&#124;").replace("<", "&lt;")


def _row(*cells: str) -> str:
    return f"| {' | '.join(' '.join(_escaped(cell).split()) for cell in cells)} |"
