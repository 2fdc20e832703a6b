"""The changes that a table's properties and layout need."""

from __future__ import annotations

import pytest

from distributary.errors import TableHalt
from distributary.lake.layout import FILES_KEPT, Layout, changes, check_layout

DAY = 86_400


def test_properties_that_differ_are_set_whatever_their_case_and_others_are_left_alone() -> None:
    has = Layout({"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "10", "delta.other": "1"})
    wanted = Layout({"delta.enablechangedatafeed": "true", "delta.checkpointInterval": "20", "delta.new": "x"})
    assert changes(wanted, has).properties == {"delta.checkpointInterval": "20", "delta.new": "x"}
    assert not changes(Layout(), has)


def test_a_feature_is_looked_for_in_the_protocol() -> None:
    wanted = Layout({"delta.feature.deletionVectors": "supported"})
    assert changes(wanted, Layout()).properties == wanted.properties
    assert not changes(wanted, Layout(features=["deletionVectors"]))


def test_another_clustering_is_altered_and_other_partitions_are_reported() -> None:
    by_a, by_b, parted = Layout(cluster_by=("a",)), Layout(cluster_by=("b",)), Layout(partition_by=("a",))
    assert changes(by_a, by_b).cluster_by == ("a",)
    assert changes(by_a, Layout()).cluster_by == ("a",)
    for has, partitions in ((by_a, False), (Layout(cluster_by=None), False), (parted, True)):
        found = changes(by_a, has)
        assert (found.cluster_by, found.partitions is not None) == (None, partitions)
    assert "--rebuild" in (changes(parted, Layout()).partitions or "")
    assert changes(parted, parted).partitions is None
    assert changes(Layout(), parted).partitions is None


def test_a_table_that_was_ever_clustered_gets_no_partitions_by_a_rebuild() -> None:
    for has in (Layout(cluster_by=("a",), features=["clustering"]), Layout(features=["clustering"])):
        fix = changes(Layout(partition_by=("a",)), has).partitions
        assert fix is not None
        assert "--rebuild" not in fix


def test_columns_that_the_table_does_not_have_are_named() -> None:
    check_layout(Layout(partition_by=("day",)), {"id", "day"}, "/lake/dbo/t")
    with pytest.raises(TableHalt, match="`cluster_by` names dya, and the table at /lake/dbo/t"):
        check_layout(Layout(cluster_by=("id", "dya")), {"id", "day"}, "/lake/dbo/t")


@pytest.mark.parametrize(
    ("result", "becomes"),
    [
        (None, "interval 30 days"),
        ("interval 1 week", "interval 30 days"),
        ("interval 90 days", None),
        ("interval 1 year", None),  # not understood: somebody's own word
    ],
)
def test_files_are_kept_longer_where_the_config_asks_for_it_and_never_shorter(
    result: str | None, becomes: str | None
) -> None:
    wanted = Layout(keep=30 * DAY)
    has = Layout({} if result is None else {FILES_KEPT.upper(): result})
    assert changes(wanted, has).properties.get(FILES_KEPT) == becomes
    assert wanted.initial_properties == {FILES_KEPT: "interval 30 days"}


def test_a_property_of_the_config_counts_over_its_keep() -> None:
    wanted = Layout({FILES_KEPT: "interval 9 days"}, keep=30 * DAY)
    assert wanted.initial_properties == {FILES_KEPT: "interval 9 days"}
    assert changes(wanted, Layout({FILES_KEPT: "interval 60 days"})).properties == wanted.properties


def test_a_week_is_what_every_table_has() -> None:
    assert Layout(keep=7 * DAY).is_empty
    assert not Layout(keep=8 * DAY).is_empty
