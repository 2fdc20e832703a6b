"""The salt of hashed columns, and the check that a config with hashes has one."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SecretStr, field_validator

from distributary.config.problem import Problem
from distributary.config.scalars import Section
from distributary.config.source import secret_from_outside
from distributary.config.table_rule import TableDefaults


class Masking(Section):
    """The salt of hashed columns, see `mask` of a table."""

    salt: SecretStr | None = Field(
        None,
        description="The key of the hashes of `mask: {column: hash}`, as ${env:NAME} or ${file:PATH}. With another "
        "salt all hashes differ.",
    )

    _not_inline = field_validator("salt", mode="before")(secret_from_outside)


def masks_without_salt(data: Any) -> list[Problem]:
    """The problem of a config, as it was read, that has hashes and no salt. It is read before its sections are checked,
    so that the problem is reported beside their faults."""
    if not isinstance(data, dict) or (hashed := _first_hash(data)) is None:
        return []
    masking = data.get("masking")
    salt = masking.salt if isinstance(masking, Masking) else masking.get("salt") if isinstance(masking, dict) else None
    text = salt.get_secret_value() if isinstance(salt, SecretStr) else salt
    if text or not isinstance(masking, (dict, Masking, type(None))):
        return []
    fix = "add masking: {salt: ${env:NAME}}, with a long random text in that variable"
    loc = hashed if masking is None else ("masking", "salt")
    return [Problem("missing-key", "a column is to be hashed, and there is no masking.salt", fix, loc)]


def _first_hash(data: dict[str, Any]) -> tuple[str | int, ...] | None:
    """The way to the first column that is to be hashed."""
    tables = data.get("tables")
    rules = [(("tables", i), rule) for i, rule in enumerate(tables if isinstance(tables, (list, tuple)) else ())]
    for loc, rule in [(("defaults",), data.get("defaults")), *rules]:
        mask = rule.mask if isinstance(rule, TableDefaults) else rule.get("mask") if isinstance(rule, dict) else None
        for column, how in mask.items() if isinstance(mask, dict) else ():
            if how == "hash":
                return (*loc, "mask", column)
    return None
