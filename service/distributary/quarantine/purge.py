"""Deletes old records from the quarantine table, without Spark: it has users' data, which must not stay forever."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from distributary.config import Config
from distributary.errors import SetupError
from distributary.storage.lake_files import plain


def purge(config: Config, older_than: float, table: str | None = None, now: datetime | None = None) -> int:
    """Deletes records of one table (schema.table) or of all that were quarantined more than `older_than` seconds before
    `now`; returns their number. Raises SetupError if the quarantine table can't be read or written."""
    path = config.quarantine_path()
    before = (now or datetime.now(timezone.utc)) - timedelta(seconds=older_than)
    condition = f"quarantined_at < '{before.isoformat()}'"
    if table is not None:
        name = table.replace("'", "''")
        condition += f" AND \"table\" = '{name}'"
    try:
        done = DeltaTable(plain(path)).delete(condition)
    except TableNotFoundError:
        return 0
    except CommitFailedError as error:
        raise SetupError(
            "quarantine-busy",
            f"the service wrote to the quarantine table at {path} at the same moment",
            "run it again",
        ) from error
    except (DeltaError, OSError) as error:
        raise SetupError(
            "lake-unwritable",
            f"the quarantine table at {path} can't be changed ({type(error).__name__})",
            "check that this machine may write to it; keys of an object store are taken from the environment",
        ) from error
    return int(done["num_deleted_rows"] or 0)
