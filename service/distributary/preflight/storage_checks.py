"""Checks of the target, the disk, the checkpoint and the lease."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from distributary.config import Config
from distributary.consume.offsets import offsets_of_log_entry
from distributary.control.lease import lease_paths, read_holder
from distributary.errors import SetupError
from distributary.ingest.tables import own_path
from distributary.preflight.check_result import CheckPassed, CheckWarning
from distributary.storage.lake_files import plain

_PROBE = b"distributary"
_MIN_FREE_BYTES = 2**30  # a batch writes new data files before the old ones are removed
_FIX = "check that this machine may write there; keys of an object store are taken from the environment"


def target_is_writable(config: Config) -> CheckPassed | CheckWarning:
    """Raises SetupError."""
    try:
        _try_to_write(own_path(config, f"probe-{uuid.uuid4().hex}"), "target.path")
    except SetupError as error:
        return _warn_if_remote(error, config.root())
    return CheckPassed(f"{config.root()}: files can be created, moved and removed")


def _warn_if_remote(error: SetupError, location: str) -> CheckWarning:
    """A warning if the location is not on this machine: Spark has its own clients and keys for such storage. Raises the
    error for a local path."""
    if _is_local(location):
        raise error
    return CheckWarning(
        "storage-not-tried",
        f"{error.message}; Spark may still reach it with the settings under `spark`",
        "set the store's keys in the environment, too: status and plan read them there",
    )


def _is_local(location: str) -> bool:
    return plain(location).startswith("/")


def _try_to_write(folder: str, key: str) -> None:
    """Creates, moves, reads and removes a file in its own folder, and removes the folders that this created."""
    try:
        files, path = fs.FileSystem.from_uri(plain(folder))
        created = _missing(files, path)
        try:
            files.create_dir(path, recursive=True)
            with files.open_output_stream(f"{path}/new") as stream:
                stream.write(_PROBE)
            files.move(f"{path}/new", f"{path}/moved")
            with files.open_input_stream(f"{path}/moved") as stream:
                if stream.read() != _PROBE:
                    raise SetupError("storage", f"{folder}: a file does not have the content that was written", _FIX)
        finally:
            _remove(files, created)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise SetupError("storage", f"{key} can't be written: {folder} ({_reason(error)})", _FIX) from error


def _missing(files: fs.FileSystem, path: str) -> list[str]:
    """The folder and its parents that do not exist yet, the innermost first."""
    missing = []
    while path.strip("/") and files.get_file_info(path).type == fs.FileType.NotFound:
        missing.append(path)
        path = path.rpartition("/")[0]
    return missing


def _remove(files: fs.FileSystem, created: list[str]) -> None:
    for i, folder in enumerate(created):
        if files.get_file_info(folder).type != fs.FileType.Directory:
            continue
        if i > 0 and files.get_file_info(fs.FileSelector(folder)):
            return  # another process wrote something there meanwhile
        files.delete_dir(folder)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def disk_has_room(config: Config) -> CheckPassed | CheckWarning:
    """Warns if a local disk is nearly full."""
    messages = []
    for key, location in (("target.path", config.root()), ("checkpoint", config.checkpoint)):
        path = Path(plain(location))
        if not _is_local(location):
            messages.append(f"{key} is not on this machine")
            continue
        there = next(parent for parent in (path, *path.parents) if parent.exists())
        free = shutil.disk_usage(there).free
        if free < _MIN_FREE_BYTES:
            return CheckWarning(
                "disk-full",
                f"{key}: {free / 2**20:.0f} MiB are free on the disk of {path}",
                "free some space, or choose another path",
            )
        messages.append(f"{key} has {free / 2**30:.1f} GiB free")
    return CheckPassed(", ".join(messages))


def checkpoint_is_ours(config: Config) -> CheckPassed | CheckWarning:
    """Warns if the checkpoint is of another config. Raises SetupError if it can't be read or written."""
    try:
        _try_to_write(f"{config.checkpoint.rstrip('/')}/.probe-{uuid.uuid4().hex}", "checkpoint")
    except SetupError as error:
        return _warn_if_remote(error, config.checkpoint)
    try:
        newest = _newest_entry(config.checkpoint)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise SetupError("checkpoint", f"{config.checkpoint} can't be read ({_reason(error)})", _FIX) from error
    if newest is None:
        return CheckPassed(f"{config.checkpoint} is new: each table continues from its own progress")
    batch, text = newest
    try:
        topics = offsets_of_log_entry(text)
    except (ValueError, AttributeError):
        topics = {}
    prefix = f"{config.source.topic_prefix}."
    foreign = sorted(topic for topic in topics if not topic.startswith(prefix))
    if foreign or not topics:
        problem = f"is of other topics: {foreign[0]}" if foreign else "has no readable offsets"
        return CheckWarning(
            "checkpoint-of-another",
            f"{config.checkpoint} {problem}",
            "give each config its own checkpoint; this one may be deleted: each table stores its own progress",
        )
    batches = "1 batch" if batch == 0 else f"{batch + 1} batches"
    of_newest = "1 topic" if len(topics) == 1 else f"{len(topics)} topics"
    return CheckPassed(f"{config.checkpoint} has planned {batches}, the newest with {of_newest}")


def _newest_entry(checkpoint: str) -> tuple[int, str] | None:
    files, path = fs.FileSystem.from_uri(plain(f"{checkpoint.rstrip('/')}/offsets"))
    if files.get_file_info(path).type == fs.FileType.NotFound:
        return None
    batches = [int(name) for info in files.get_file_info(fs.FileSelector(path)) if (name := info.base_name).isdigit()]
    if not batches:
        return None
    with files.open_input_stream(f"{path}/{max(batches)}") as stream:
        return max(batches), stream.read().decode("utf-8", "replace")


def driver_is_known(config: Config) -> CheckPassed | CheckWarning:
    """Reports which driver runs the config, by its lease. Raises SetupError."""
    try:
        holder = read_holder(lease_paths(config)[0])
    except SetupError as error:
        return _warn_if_remote(error, config.root())
    if holder is None:
        return CheckPassed("no driver runs this config")
    if holder.is_gone:
        return CheckPassed(f"no driver runs this config; the last one was killed: {holder}")
    return CheckPassed(f"a driver runs this config{'' if holder.is_alive else ', or was killed elsewhere'}: {holder}")
