"""The commit of rows: through Delta's own transaction in Spark's JVM, on the version that was read or not at all."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from distributary.delta.commit import CommitPayload, concurrent_change
from distributary.delta.commit_lock import commit_lock
from distributary.delta.log_reader import LogReader
from distributary.delta.storage import TableFiles
from distributary.delta.table_features import VECTORS
from distributary.errors import TableHalt
from distributary.launch.classes import DELTA_LOG, java_class, scala_object
from distributary.launch.small_commits import write_simply

_DELTA = "org.apache.spark.sql.delta"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
"""The session's setting with the text that the next commit carries."""
_SESSION = "org.apache.spark.sql.classic.SparkSession"
# By default Delta retries a commit on a newer version, ten million times, if its rules see no conflict. Rows were
# located in the version that was read: on another one a retry would remove the wrong rows.
_NO_SECOND_TRY = ("spark.databricks.delta.maxCommitAttempts", "0")


class DeltaCommitter:
    """Commits through Spark's JVM, without checkpoints: LogCheckpointer writes them. `path`: the table for Hadoop;
    `files`: the same files for Arrow."""

    def __init__(self, session: SparkSession, path: str, files: TableFiles) -> None:
        self._path = path
        self._files = files
        self._log = LogReader(files)
        self._session = session.newSession()  # a setting of its own must not change how others commit
        self._session.conf.set(*_NO_SECOND_TRY)
        write_simply(self._session, path)

    def commit(
        self,
        seen_version: int,
        actions: Sequence[Mapping[str, Any]],
        record: CommitPayload,
        *,
        changes_rows: bool = True,
    ) -> int:
        """See Committer. A commit whose reply was lost is found in the log and was successful."""
        session = self._session
        with self._active():
            java_session = session._jsparkSession
            none = java_class(session, "scala.Option").empty()
            log = java_class(session, DELTA_LOG).forTable(java_session, self._path)
            transaction = log.startTransaction(none, self._snapshot_of(log, seen_version))
            if transaction.readVersion() != seen_version:
                raise concurrent_change(self._path, seen_version)
            transaction.readWholeTable()
            transaction.unregisterPostCommitHooksWhere(self._is_checkpoint_hook())
            identity = transaction.txnId()
            try:
                java_actions = self._java_actions(actions, record)
                with self._operation(record, changes_rows=changes_rows) as operation, commit_lock(self._files):
                    version = self._put(transaction, java_actions, operation)
            except (Py4JError, PySparkException, OSError) as error:
                if self._is_there(seen_version + 1, identity, error):
                    return seen_version + 1
                raise
        if version != seen_version + 1:
            raise RuntimeError(f"Delta committed version {version} of {self._path} on version {seen_version}")
        return version

    def _snapshot_of(self, log: Any, version: int) -> Any:
        """Delta's own snapshot of a version (a Scala option), if it has one and the commit's file is still the same.
        Otherwise none: then Delta lists the whole log, which grows with each commit."""
        option = java_class(self._session, "scala.Option")
        snapshot = log.unsafeVolatileSnapshot()
        file = self._log.commit_file_stamp(version) if snapshot.version() == version else None
        if file is None or file[0] is None:
            return option.empty()
        is_same = snapshot.logSegment().lastCommitFileModificationTimestamp() == file[0] // 1_000_000
        return option.apply(snapshot) if is_same else option.empty()

    def check(self, rows: pa.Table, constraints: Mapping[str, str]) -> None:
        """See Committer. As in Delta, a constraint that is NULL for a row is broken. One Spark job evaluates all
        constraints: for a small batch, a job for each would cost more than the evaluation."""
        try:
            broken = self._first_broken(rows, constraints)
        except PySparkException:  # a constraint may fail with an error for a row that another constraint refuses
            broken_rows = (self._first_broken(rows, {name: condition}) for name, condition in constraints.items())
            broken = next(filter(None, broken_rows), None)
        if broken is None:
            return
        name, count, place = broken
        where = "" if place is None else ", the first one at partition {} and offset {}".format(*place)
        raise TableHalt(
            "constraint-broken",
            f"the table's constraint {name} ({constraints[name]}) does not hold for {count} of the batch's rows{where}",
            f"drop it (ALTER TABLE … DROP CONSTRAINT {name}), or correct the row at the source and skip the"
            " record (`distributary quarantine add`)",
        )

    def _first_broken(
        self, rows: pa.Table, constraints: Mapping[str, str]
    ) -> tuple[str, int, tuple[int, int] | None] | None:
        """The name of the first broken constraint, the number of rows that break it, and the lowest partition and
        offset of these rows if they have any; None if no constraint is broken."""
        names = [*constraints]
        place = "struct(__partition, __offset)" if {"__partition", "__offset"} <= {*rows.column_names} else "NULL"
        conditions = (f"NOT coalesce(({constraints[name]}), false)" for name in names)
        expressions = ", ".join(
            f"struct(count_if({condition}) AS count, min(IF({condition}, {place}, NULL)) AS place)"
            for condition in conditions
        )
        frame = self._session.createDataFrame(rows)
        # In one partition the counts need no shuffle, which would be a job more.
        (answers,) = frame.coalesce(1).agg(expr(f"array({expressions}) AS answers")).collect()[0]
        for name, answer in zip(names, answers, strict=True):
            if answer["count"]:
                return name, answer["count"], None if answer["place"] is None else tuple(answer["place"])
        return None

    def enable_vectors(self) -> None:
        """See Committer."""
        path = self._path.replace("`", "``")
        self._session.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{VECTORS}' = 'true')")

    def _is_there(self, version: int, identity: str, error: Exception) -> bool:
        """Whether the failed commit of the transaction is in the log all the same. Raises ConcurrentChange where its
        version is another's."""
        commit = self._log.read_commit(version)
        if commit is None:
            return False
        ids = [action["commitInfo"].get("txnId") for action in commit if "commitInfo" in action]
        if identity in ids:
            return True
        raise concurrent_change(self._path, version - 1) from error

    def _is_checkpoint_hook(self) -> Any:
        """A predicate that is true for Delta's own checkpoint after the commit, which is made elsewhere (see
        checkpoint.py): a Scala set, which is a function, too."""
        hook = scala_object(self._session, f"{_DELTA}.hooks.CheckpointHook")
        return java_class(self._session, "scala.collection.immutable.Set$Set1")(hook)

    def _put(self, transaction: Any, java_actions: Any, operation: Any) -> int:
        """The transaction's commit, whose reply may be lost."""
        return int(transaction.commit(java_actions, operation))

    def _java_actions(self, actions: Sequence[Mapping[str, Any]], record: CommitPayload) -> Any:
        now = int(time.time() * 1000)
        count = {"txn": {"appId": record.app_id, "version": record.sequence, "lastUpdated": now}}
        parse = scala_object(self._session, f"{_DELTA}.actions.Action").fromJson
        java_list = java_class(self._session, "java.util.ArrayList")()
        for action in (*actions, count):
            java_list.add(parse(json.dumps(action)))
        return java_class(self._session, "org.apache.spark.api.python.PythonUtils").toSeq(java_list)

    @contextmanager
    def _operation(self, record: CommitPayload, *, changes_rows: bool) -> Iterator[Any]:
        """The operation that the table's history shows for the commit, with the record's text."""
        if changes_rows:
            yield self._update(record)
            return
        self._session.conf.set(USER_METADATA, record.text)
        try:
            yield self._optimize()
        finally:
            self._session.conf.unset(USER_METADATA)

    def _optimize(self) -> Any:
        nothing = java_class(self._session, "org.apache.spark.api.python.PythonUtils").toSeq(
            java_class(self._session, "java.util.ArrayList")()
        )
        none = java_class(self._session, "scala.Option").empty()
        return java_class(self._session, f"{_DELTA}.DeltaOperations$Optimize")(nothing, nothing, False, none, False)

    def _update(self, record: CommitPayload) -> Any:
        """Of Delta's operations this one takes the commit's text as an argument, so that no setting of the session is
        needed."""
        update = java_class(self._session, "org.apache.spark.sql.streaming.OutputMode").Update()
        text = java_class(self._session, "scala.Option").apply(record.text)
        operation = java_class(self._session, f"{_DELTA}.DeltaOperations$StreamingUpdate")
        return operation(update, record.app_id, record.sequence, text)

    @contextmanager
    def _active(self) -> Iterator[None]:
        """Delta reads its settings from the session that is active in the thread."""
        sessions = java_class(self._session, _SESSION)
        before = sessions.getActiveSession()
        sessions.setActiveSession(self._session._jsparkSession)
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()
