from dataclasses import replace

import pytest

from distributary.errors import TransientError
from distributary.ingest.table_cursor import TableCursor
from distributary.progress.record import Head, first_progress

FIRST = first_progress("p.dbo.t", "id", "mysql", "upsert", ("id",)).next_commit(next={0: 9})


def test_a_move_tells_whether_the_progress_record_is_another_one() -> None:
    cursor = TableCursor()
    assert not cursor.move_to(None)  # the table still does not exist
    assert cursor.move_to(Head(0, None))  # a batch that failed then has created it
    assert not cursor.move_to(Head(0, None))
    assert cursor.move_to(Head(1, FIRST))
    assert not cursor.move_to(Head(2, FIRST))  # another tool compacted it
    assert (cursor.head, cursor.next_offsets) == (Head(2, FIRST), {0: 9})
    restored = replace(Head(3, FIRST), progress=FIRST.next_commit(next={0: 4}))
    assert cursor.move_to(restored)
    assert cursor.next_offsets == {0: 4}
    assert cursor.move_to(None)  # deleted
    assert cursor.next_offsets == {}


def test_no_table_is_made_where_the_lake_is_gone() -> None:
    cursor = TableCursor()
    with pytest.raises(TransientError, match="lake-missing"):
        cursor.move_to(None, lambda: False)  # a new table
    cursor.move_to(Head(1, FIRST))
    with pytest.raises(TransientError, match="lake-missing"):
        cursor.move_to(None, lambda: False)
    assert cursor.next_offsets == {0: 9}
    assert not cursor.move_to(Head(1, FIRST), lambda: False)
    assert cursor.move_to(None, lambda: True)
