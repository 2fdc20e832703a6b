"""Whether the places that the service writes to can be written, and what the checkpoint says."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from distributary.config import Config
from distributary.consume.offsets import offsets_of_log_entry
from distributary.control.lease import lease_paths, told_holder
from distributary.errors import SetupError
from distributary.ingest.tables import own_path
from distributary.preflight.check_result import Doubtful, Healthy
from distributary.storage.lake_files import plain

_PROBE = b"distributary"
_LITTLE = 2**30  # bytes; a merge writes a table's touched files anew before the old ones go
_FIX = "check that this machine may write there; keys of an object store are taken from the environment"


def target_is_writable(config: Config) -> Healthy | Doubtful:
    """Raises SetupError."""
    try:
        _try_to_write(own_path(config, f"probe-{uuid.uuid4().hex}"), "target.path")
    except SetupError as error:
        return _for_spark_to_tell(error, config.root())
    return Healthy(f"{config.root()}: files can be made, moved and removed")


def _for_spark_to_tell(error: SetupError, location: str) -> Doubtful:
    """Spark has its own ways into other storage, and keys of its own. Raises the error where that can't be."""
    if _is_local(location):
        raise error
    return Doubtful(
        "storage-not-tried",
        f"{error.message}; Spark may still get there by what `spark` in the config says",
        "give the store's keys in the environment as well: status and plan take them from there",
    )


def _is_local(location: str) -> bool:
    return plain(location).startswith("/")


def _try_to_write(folder: str, key: str) -> None:
    """Makes, moves, reads and removes a file in a folder of its own, and removes every folder that was made for it."""
    try:
        files, place = fs.FileSystem.from_uri(plain(folder))
        made = _missing(files, place)
        try:
            files.create_dir(place, recursive=True)
            with files.open_output_stream(f"{place}/new") as stream:
                stream.write(_PROBE)
            files.move(f"{place}/new", f"{place}/moved")
            with files.open_input_stream(f"{place}/moved") as stream:
                if stream.read() != _PROBE:
                    raise SetupError("storage", f"{folder}: what was written is not what is read", _FIX)
        finally:
            _remove(files, made)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise SetupError("storage", f"{key} can't be written: {folder} ({_reason(error)})", _FIX) from error


def _missing(files: fs.FileSystem, place: str) -> list[str]:
    """The folder and those above it that are not there yet, the innermost first."""
    missing = []
    while place.strip("/") and files.get_file_info(place).type == fs.FileType.NotFound:
        missing.append(place)
        place = place.rpartition("/")[0]
    return missing


def _remove(files: fs.FileSystem, made: list[str]) -> None:
    for i, folder in enumerate(made):
        if files.get_file_info(folder).type != fs.FileType.Directory:
            continue
        if i > 0 and files.get_file_info(fs.FileSelector(folder)):
            return  # somebody else put something there meanwhile
        files.delete_dir(folder)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def disk_has_room(config: Config) -> Healthy | Doubtful:
    """The disks of those places that are on this machine."""
    said = []
    for key, location in (("target.path", config.root()), ("checkpoint", config.checkpoint)):
        path = Path(plain(location))
        if not _is_local(location):
            said.append(f"{key} is not on this machine")
            continue
        there = next(parent for parent in (path, *path.parents) if parent.exists())
        free = shutil.disk_usage(there).free
        if free < _LITTLE:
            return Doubtful(
                "disk-full",
                f"{key}: {free / 2**20:.0f} MiB are free on the disk of {path}",
                "make room, or choose another place",
            )
        said.append(f"{key} has {free / 2**30:.1f} GiB free")
    return Healthy(", ".join(said))


def checkpoint_is_ours(config: Config) -> Healthy | Doubtful:
    """Raises SetupError where the checkpoint can't be read or written."""
    try:
        _try_to_write(f"{config.checkpoint.rstrip('/')}/.probe-{uuid.uuid4().hex}", "checkpoint")
    except SetupError as error:
        return _for_spark_to_tell(error, config.checkpoint)
    try:
        newest = _newest_entry(config.checkpoint)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise SetupError("checkpoint", f"{config.checkpoint} can't be read ({_reason(error)})", _FIX) from error
    if newest is None:
        return Healthy(f"{config.checkpoint} is new: each table goes on from where it is itself")
    batch, text = newest
    try:
        topics = offsets_of_log_entry(text)
    except (ValueError, AttributeError):
        topics = {}
    prefix = f"{config.source.topic_prefix}."
    foreign = sorted(topic for topic in topics if not topic.startswith(prefix))
    if foreign or not topics:
        what = f"is of other topics: {foreign[0]}" if foreign else "says no offsets that can be understood"
        return Doubtful(
            "checkpoint-of-another",
            f"{config.checkpoint} {what}",
            "give each config a checkpoint of its own; this one may be deleted: tables know themselves where they are",
        )
    return Healthy(f"{config.checkpoint} has planned {batch + 1} batches, the newest with {len(topics)} topics")


def _newest_entry(checkpoint: str) -> tuple[int, str] | None:
    files, place = fs.FileSystem.from_uri(plain(f"{checkpoint.rstrip('/')}/offsets"))
    if files.get_file_info(place).type == fs.FileType.NotFound:
        return None
    batches = [int(name) for info in files.get_file_info(fs.FileSelector(place)) if (name := info.base_name).isdigit()]
    if not batches:
        return None
    with files.open_input_stream(f"{place}/{max(batches)}") as stream:
        return max(batches), stream.read().decode("utf-8", "replace")


def driver_is_known(config: Config) -> Healthy | Doubtful:
    """Which driver runs the config, as its lease says. Raises SetupError."""
    try:
        holder = told_holder(lease_paths(config)[0])
    except SetupError as error:
        return _for_spark_to_tell(error, config.root())
    if holder is None:
        return Healthy("none runs this config")
    if holder.is_gone:
        return Healthy(f"none runs this config any more; the last one was killed: {holder}")
    return Healthy(f"one runs this config{'' if holder.is_alive else ', or was killed elsewhere'}: {holder}")
