"""`verify --source-dsn` of a bench's table, in this process."""

from __future__ import annotations

from tests.support.spark import Bench

from distributary.ingest.tables import find_table, list_tables
from distributary.verify.check import VerifyOptions, report
from distributary.verify.report import TableReport


def verify_with_source(bench: Bench, dsn: str) -> TableReport:
    """The report on the table, which has an `error` if the live source could not be read."""
    config = bench.config()
    kafka = bench.client(config)
    table = find_table("dbo.t", list_tables(config, kafka))
    return report(config, table, bench.session, kafka, VerifyOptions(source_dsn=dsn), lambda _: None)


def verified(bench: Bench, dsn: str) -> TableReport:
    """The report on a table that could be compared."""
    found = verify_with_source(bench, dsn)
    assert found.error is None, found.error
    return found


def faults(found: TableReport) -> dict[str, int]:
    """How many rows differ, or were not compared, by the reason."""
    return {name: n for name, n in {**found.counts.faults, **found.counts.not_checked}.items() if n}


def assert_one_of_each_fault(found: TableReport) -> None:
    """Row 1 was changed at the source alone (`v` became "changed", `n` NULL), row 3 deleted, row 4 inserted; row 2 was
    changed in the table by a later record, and one record was not applied yet."""
    assert faults(found) == {"missing": 1, "unexpected": 1, "different": 1, "changed_meanwhile": 1}
    assert [(d.key, d.fault) for d in found.differences] == [
        ('{"id":1}', "different"),
        ('{"id":3}', "unexpected"),
        ('{"id":4}', "missing"),
    ]
    assert [(v.column, v.lake, v.expected) for v in found.differences[0].values] == [
        ("v", "a", "changed"),
        ("n", "1.50", None),
    ]
    assert any("1 records that were not applied yet" in note for note in found.notes)
