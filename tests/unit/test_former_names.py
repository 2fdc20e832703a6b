import json
from pathlib import Path

from distributary.former_names import FORMER_NAMES, with_former_names
from distributary.observe.metrics import AMBIGUOUS_DELETES, CATALOGUE, ORPHANED_ROWS
from distributary.progress.record import Progress, SourceSnapshot, first_progress

DOCS = Path(__file__).parents[2] / "docs"


def test_a_renamed_field_is_there_under_both_names() -> None:
    fields = {"table": "dbo.t", "orphaned_rows": 3}
    assert with_former_names(fields) == {"table": "dbo.t", "orphaned_rows": 3, "ghosts": 3}
    assert fields == {"table": "dbo.t", "orphaned_rows": 3}


def test_the_docs_list_all_former_names() -> None:
    listed = (DOCS / "versions.md").read_text()
    for name, former in FORMER_NAMES.items():
        assert f"| `{name}` | `{former}` |" in listed
    former_metrics = [metric for metric in CATALOGUE if metric.help.startswith("Former name of")]
    assert len(former_metrics) == 2
    for metric in former_metrics:
        assert f"| `{metric.series[0]}` |" in listed


def test_a_former_metric_differs_in_its_name_alone() -> None:
    for metric in (AMBIGUOUS_DELETES, ORPHANED_ROWS):
        former = metric.former("distributary_old")
        assert (former.kind, former.labels, former.unit) == (metric.kind, metric.labels, metric.unit)
        assert metric.name in former.help


def test_stored_records_keep_the_names_that_older_versions_read() -> None:
    new = first_progress("p.dbo.t", "id", "mysql", "upsert", ("id",))
    changes = {"ambiguous_deletes": 4, "snapshot_row": "2", "incomplete_snapshot": "3", "snapshot_ts_ms": 5}
    record = new.next_commit(snapshot=SourceSnapshot(position="1", orphaned_rows=2), **changes)
    (stored,) = json.loads(record.to_json()).values()
    former = {"undecided": 4, "read": "2", "unread": "3", "read_ts_ms": 5}
    assert {name: stored[name] for name in former} == former
    assert stored["snapshot"]["ghosts"] == 2
    assert Progress.from_json(record.to_json()) == record
