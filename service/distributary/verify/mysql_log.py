"""The end of a MySQL or MariaDB log when a table was read, to find rows with a later position."""

from __future__ import annotations

import re

from distributary import sql
from distributary.verify.source import ReadPoint

_FILE_AND_POS = len("000:") + 1, 20 + len("/") + 20  # of file and pos in a position


def read_point(end: tuple[str, int] | None, gtids: str) -> ReadPoint:
    """A read of a server whose log ended at this file and position, with these executed GTIDs.

    A position with a GTID is compared by it, because it is the same on every server; others by file and position.
    """
    by_file, by_gtid, descriptions = "false", "", []
    if end is not None:
        name, pos = end
        descriptions.append(f"{name}:{pos}")
        number = re.search(r"[0-9]*$", name)
        by_file = (
            f"substring({{0}}, {_FILE_AND_POS[0]}, {_FILE_AND_POS[1]}) > '{(number and number[0]) or 0:0>20}/{pos:020}'"
        )
    if gtids:
        descriptions.append(f"GTID {re.sub(chr(92) + 's', '', gtids)}")
        last = ", ".join(f"{sql.text(origin)}, '{number:020}'" for origin, number in newest(gtids).items())
        by_gtid = (
            "WHEN split_part({0}, '/', 6) <> '' THEN split_part({0}, '/', 6) >"
            f" coalesce(element_at(map({last}), split_part({{0}}, '/', 5)), '')"
        )
    is_later = f"CASE {by_gtid} ELSE {by_file} END" if by_gtid else by_file
    unknown = "an unknown position of its log (binlog off, or no privilege): newer rows are not recognized"
    return ReadPoint(", ".join(descriptions) or unknown, is_later.format)


def newest(gtids: str) -> dict[str, int]:
    """The highest transaction per origin: MySQL's UUID, MariaDB's domain."""
    highest: dict[str, int] = {}
    for gtid in re.sub(r"\s", "", gtids).split(","):
        if ":" in gtid:
            origin, *parts = gtid.split(":")
            tagged = origin
            for part in parts:
                if not part[0].isdigit():
                    tagged = f"{origin}:{part}"
                else:
                    highest[tagged] = max(highest.get(tagged, 0), int(part.rpartition("-")[2]))
        else:
            domain, _, rest = gtid.partition("-")
            highest[domain] = max(highest.get(domain, 0), int(rest.rpartition("-")[2]))
    return highest
