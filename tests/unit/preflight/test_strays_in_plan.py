"""`plan` predicts for records that their table can't have what the service does with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.batch_reader import PROGRESS, TOPIC, Lake, Raw, config, reader_of
from tests.support.decoding import rejections
from tests.support.random_share import thorough_but
from tests.support.stray_records import COLUMNS, CONNECT, EVERY, STRAYS, good, record

from distributary.config import Config
from distributary.consume.sample import SampledRecord
from distributary.consume.topics import TableId
from distributary.errors import TableHalt
from distributary.ingest.stray_records import NEAR
from distributary.ingest.tables import ConfiguredTable
from distributary.preflight.existing_table import ExistingTable
from distributary.preflight.sample import Sample
from distributary.preflight.table_plan import TablePlan
from distributary.preflight.table_planner import plan_table
from distributary.progress.record import Progress
from distributary.workers.batch_progress import progress_before

TYPES = {**COLUMNS, "text": "date"}
FILLED = PROGRESS.model_copy(update={"source_table": "d.dbo.t"})
MIXES: dict[str, tuple[str, bool]] = {
    "a single one": ("gsg", False),
    "a single one that is the first": ("sg", False),
    "the newest one": ("gs", True),
    "two": ("gsgsg", True),
    "only that": ("s", True),
}
"""Good and stray records from offset 1 on, and whether a table that has rows halts."""


def mixed(stray: dict[str, Any], kinds: str) -> list[SampledRecord]:
    return [record(index, **stray) if kind == "s" else good(index, stray) for index, kind in enumerate(kinds, 1)]


def halt_of_service(
    found: Config, records: Sequence[SampledRecord], columns: dict[str, str], known: Progress | None
) -> Any:
    """The code of the halt that the service would make; None without one. All that is rejected is stray then."""
    lake = Lake(columns)
    reader = reader_of(found, lake, records)
    try:
        topic_format = reader.detect_format(TOPIC, {0: 1}, known)
        assert topic_format is not None
        progress = progress_before(known, TOPIC, topic_format, reader, reader.settings, ())
        decoded = reader.read_and_change_table(Raw(records), topic_format, progress).decoded
    except TableHalt as halt:
        return halt.code
    assert set(rejections(decoded).values()) <= {"needs-decision"}
    return None


def plan_of(
    found: Config, records: Sequence[SampledRecord], columns: dict[str, str], known: Progress | None
) -> TablePlan:
    settings = found.settings_for("dbo", "t")
    assert settings is not None
    ends = {0: records[-1].offset + 1}
    sample = Sample(TOPIC, {0: 1}, {0: 1}, ends, tuple(records), tuple(records), {})
    table = ConfiguredTable(TableId("dbo", "t"), TOPIC.name, settings, "memory")
    lake = ExistingTable({**columns, "__op": "string"}, has_files=True) if columns else None
    return plan_table(table, found, sample, known, lake, 1)[0]


@pytest.mark.parametrize(("kinds", "halts"), thorough_but(2, MIXES.values(), unpack=True), ids=MIXES)
@pytest.mark.parametrize(("stray", "code"), EVERY)
@pytest.mark.parametrize("is_new", [False, True])
def test_6_3_plan_and_service_agree_on_records_that_a_table_cannot_have(
    tmp_path: Path, stray: dict[str, Any], code: str, kinds: str, halts: bool, is_new: bool
) -> None:
    found = config(tmp_path, rule={"columns": {"text": "date"}})
    columns, known = ({}, None) if is_new else (TYPES, FILLED)
    records = mixed(stray, kinds)
    halted = halt_of_service(found, records, columns, known)
    plan = plan_of(found, records, columns, known)
    assert (plan.error or {}).get("code") == halted
    if not is_new:
        assert halted == (code if halts else None)
        assert plan.columns == TYPES


@pytest.mark.parametrize(("stray", "code"), EVERY)
def test_6_3_plan_counts_a_stray_of_an_earlier_batch(tmp_path: Path, stray: dict[str, Any], code: str) -> None:
    found = config(tmp_path, rule={"columns": {"text": "date"}})
    records = mixed(stray, "sg")
    for before, halts in ((1 - NEAR, True), (-NEAR, False)):
        known = FILLED.model_copy(update={"strays": {0: before}, "next": {0: 1}})
        error = plan_of(found, records, TYPES, known).error
        assert (error or {}).get("code") == halt_of_service(found, records, TYPES, known) == (code if halts else None)


def test_6_3_plan_and_service_agree_on_schemas_that_contradict_each_other(tmp_path: Path) -> None:
    number, text = ({**CONNECT, "new": {"type": kind}} for kind in ("int32", "bytes"))
    records = [record(1), record(2, number), record(3, text), record(4, number)]
    found = config(tmp_path)
    assert halt_of_service(found, records, COLUMNS, FILLED) is None
    plan = plan_of(found, records, COLUMNS, FILLED)
    assert (plan.error, plan.added) == (None, {"new": "int"})


def test_6_3_plan_leaves_the_columns_of_a_stray_out(tmp_path: Path) -> None:
    stray = {"columns": {**STRAYS["type"][0]["columns"], "x": CONNECT["n"]}}
    plan = plan_of(config(tmp_path), mixed(stray, "gsg"), COLUMNS, FILLED)
    assert (plan.error, plan.added) == (None, {})
