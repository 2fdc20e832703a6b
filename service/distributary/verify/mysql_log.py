"""How far the log of a MySQL or a MariaDB had come when it was read: which positions of rows are from later."""

from __future__ import annotations

import re

from distributary import sql
from distributary.verify.source import ReadAt

_PLACE = len("000:") + 1, 20 + len("/") + 20  # of file and pos in a position


def read_at(place: tuple[str, int] | None, gtids: str) -> ReadAt:
    """A read of a server whose log had come to this file and position, and that had these transactions.

    A position that has a GTID is compared by it: it says the same on every server. Others by file and position.
    """
    by_place, by_gtid, told = "false", "", []
    if place is not None:
        name, pos = place
        told.append(f"{name}:{pos}")
        number = re.search(r"[0-9]*$", name)
        by_place = f"substring({{0}}, {_PLACE[0]}, {_PLACE[1]}) > '{(number and number[0]) or 0:0>20}/{pos:020}'"
    if gtids:
        told.append(f"GTID {re.sub(chr(92) + 's', '', gtids)}")
        last = ", ".join(f"{sql.text(origin)}, '{number:020}'" for origin, number in newest(gtids).items())
        by_gtid = (
            "WHEN split_part({0}, '/', 6) <> '' THEN split_part({0}, '/', 6) >"
            f" coalesce(element_at(map({last}), split_part({{0}}, '/', 5)), '')"
        )
    says = f"CASE {by_gtid} ELSE {by_place} END" if by_gtid else by_place
    unknown = "a place of its log that is not known (binlog off, or no right to ask): nothing tells what is newer"
    return ReadAt(", ".join(told) or unknown, says.format)


def newest(gtids: str) -> dict[str, int]:
    """The highest transaction of each origin, as positions have it: MySQL's uuid, MariaDB's domain."""
    highest: dict[str, int] = {}
    for one in re.sub(r"\s", "", gtids).split(","):
        if ":" in one:
            origin, *parts = one.split(":")
            tagged = origin
            for part in parts:
                if not part[0].isdigit():
                    tagged = f"{origin}:{part}"
                else:
                    highest[tagged] = max(highest.get(tagged, 0), int(part.rpartition("-")[2]))
        else:
            domain, _, rest = one.partition("-")
            highest[domain] = max(highest.get(domain, 0), int(rest.rpartition("-")[2]))
    return highest
