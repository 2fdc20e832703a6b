"""Spark jobs that are cancelled together."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError

from distributary.launch.tagged_jobs import TaggedJobs


@pytest.mark.parametrize(
    "error", [Py4JJavaError.__new__(Py4JJavaError), Py4JNetworkError("no answer"), ConnectionRefusedError()]
)
def test_once_spark_has_ended_there_is_nothing_to_cancel(error: Exception) -> None:
    session = MagicMock()
    session.sparkContext.cancelJobsWithTag.side_effect = error
    TaggedJobs(session, "a tag").cancel()
    session.sparkContext.cancelJobsWithTag.assert_called_once_with("a tag")
