"""When a table is registered in a catalog, with a session that answers like a metastore."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from pyspark.errors import AnalysisException

from distributary.workers.catalog import CatalogEntry


def test_a_catalog_that_failed_is_asked_again_a_minute_after_it_answered() -> None:
    now, log = [0.0], Mock()

    def fails(_name: str) -> bool:
        now[0] += 600.0  # as long as a metastore may take to say so
        raise AnalysisException("it is away")

    session: Any = Mock()
    session.catalog.tableExists.side_effect = fails
    entry = CatalogEntry(session, ("c", "s", "t"), "/lake/s/t", log, lambda: now[0])
    assert entry.is_due
    assert not entry.ensure()
    assert "it is away" in log.warning.call_args.kwargs["reason"]
    assert not entry.is_due
    now[0] += 59.0
    assert not entry.is_due
    now[0] += 2.0
    assert entry.is_due
