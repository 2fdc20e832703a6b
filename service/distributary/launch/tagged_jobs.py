"""Spark jobs that can be cancelled together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


class TaggedJobs:
    """The Spark jobs with a tag."""

    def __init__(self, session: SparkSession, tag: str) -> None:
        self._context = session.sparkContext
        self._tag = tag

    @contextmanager
    def tagged(self) -> Iterator[None]:
        """Jobs that this thread starts inside have the tag."""
        self._context.addJobTag(self._tag)
        try:
            yield
        finally:
            self._context.removeJobTag(self._tag)

    def cancel(self) -> None:
        """Cancels the running jobs. Does nothing if Spark has ended, and its jobs with it."""
        with suppress(Py4JError, OSError):
            self._context.cancelJobsWithTag(self._tag)
