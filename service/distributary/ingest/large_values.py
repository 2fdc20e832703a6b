"""Fetches large values that the connector stored in buckets, and decodes records with them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.large_values import LargeValues, Unreadable
from distributary.errors import TransientError
from distributary.types.record_schema import RecordSchema

if TYPE_CHECKING:  # Spark's tasks import this module, and the config takes as long as all else that they import
    from distributary.config.large_messages import LargeMessages

_AT_ONCE = 8
"""Requests: each mostly waits for the store."""
_TRIES = 3  # by the client itself, some seconds together; after those the table's own turns come
_CONNECT_SECONDS, _REQUEST_SECONDS = 5.0, 30.0
_VALUES_OF_A_BATCH = 2
"""How many of the largest values fit in one batch."""
_AWS_ERROR = re.compile(r"AWS Error ([A-Z_]+|\[code [0-9]+\])")
_REFUSED = re.compile(
    r"AWS Error (?:ACCESS_DENIED|UNKNOWN \(HTTP status 40[03]\)|\[code [0-9]+\])|Failed to flush response stream"
)
"""The store refuses one object or all. S3's own errors are numbers in pyarrow, such as 136 of an archived object; those
of KMS are unknown. If the answer with the reason is longer than the object, pyarrow fails with its response stream."""
_PROBE = "distributary-permission-check"
"""The name of an object that does not exist. A store answers so only if the service may read objects in this place."""


class Allowance:
    """So many bytes of large values may be fetched. Safe for several threads."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.was_exceeded = False
        self._lock = Lock()

    def spend(self, size: int) -> bool:
        """Whether so many bytes are left; then they are taken."""
        with self._lock:
            if size > self.left:
                self.was_exceeded = True
                return False
            self.left -= size
            return True

    def give_back(self, size: int) -> None:
        """So many bytes were taken, but not fetched."""
        with self._lock:
            self.left += size


@dataclass(frozen=True)
class LargeValueStore:
    """The buckets that may be read, and how. Spark's tasks get it with the credentials of the config."""

    buckets: frozenset[str]
    value_bytes: int
    client: tuple[tuple[str, str | bool], ...] = field(repr=False)
    """Options of pyarrow's client."""

    @classmethod
    def of(cls, settings: LargeMessages | None) -> LargeValueStore | None:
        """The store of the config; None if it has none."""
        if settings is None:
            return None
        client: dict[str, str | bool] = {}
        if settings.access_key_id is not None and settings.secret_access_key is not None:
            secret = settings.secret_access_key.get_secret_value()
            client |= {"access_key": settings.access_key_id, "secret_key": secret}
        if settings.region is not None:
            client["region"] = settings.region
        if settings.endpoint is not None:
            url = urlsplit(settings.endpoint)
            client |= {"scheme": url.scheme, "endpoint_override": url.netloc, "force_virtual_addressing": False}
        return cls(frozenset(settings.buckets), settings.max_bytes, tuple(sorted(client.items())))

    def allowance(self, sharers: int = 1) -> Allowance:
        """The bytes of one batch, or of one of so many that share them."""
        return Allowance(_VALUES_OF_A_BATCH * self.value_bytes // sharers)

    def fetch(self, references: Iterable[str], allowance: Allowance) -> dict[str, bytes | Unreadable]:
        """The values, or why they can't be fetched. Each is requested once, and again if only this object may be
        refused. Raises TransientError if the store does not answer, or refuses all objects."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            fetched = pool.map(lambda reference: (reference, self._value(reference, allowance)), sorted(references))
            return dict(fetched)

    def _value(self, reference: str, allowance: Allowance) -> bytes | Unreadable:
        bucket, _, key = reference.partition("|")
        if bucket not in self.buckets:
            return Unreadable(f"large_messages.buckets does not have its bucket {bucket}")
        files = _file_system(self.client)
        try:
            return self._content(files, bucket, key, allowance)
        except pa.ArrowInvalid:
            return Unreadable(f"its key is none that objects of the bucket {bucket} can have")
        except OSError as error:
            if not _REFUSED.search(str(error)):
                raise _failed(bucket, error) from None  # its text has the object's key
        return self._content_after_refusal(files, bucket, key, allowance)

    def _content_after_refusal(
        self, files: fs.FileSystem, bucket: str, key: str, allowance: Allowance
    ) -> bytes | Unreadable:
        """Asks for a refused object again once it is known that the service may read others. A refusal of this object
        alone would never end: its record must not hold up the table."""
        _check_permission(files, bucket, key)
        try:
            return self._content(files, bucket, key, allowance)
        except OSError as error:
            if not _REFUSED.search(str(error)):
                raise _failed(bucket, error) from None
            return Unreadable(
                f"the store refuses this object of the bucket {bucket} ({_error_name(error)}) and answers for others:"
                " it may be archived, or its policy or its encryption key (KMS) excludes the service"
            )

    def _content(self, files: fs.FileSystem, bucket: str, key: str, allowance: Allowance) -> bytes | Unreadable:
        try:
            with files.open_input_file(f"{bucket}/{key}") as file:
                size = file.size()
                if size > self.value_bytes:
                    return Unreadable(f"it has {size} bytes, more than large_messages.max_bytes")
                if not allowance.spend(size):
                    # Seen only of a batch of one record: others are halved.
                    return Unreadable(
                        f"its record has more bytes of large values than {_VALUES_OF_A_BATCH} times"
                        " large_messages.max_bytes"
                    )
                content = _read(file, size, allowance)
        except FileNotFoundError:
            if files.get_file_info(bucket).type == fs.FileType.NotFound:
                raise
            return Unreadable(f"its object is not in the bucket {bucket}")
        if len(content) != size:
            raise OSError("the object ended early")
        return content


def decode_with_large_values(
    decoder: Decoder,
    raw: pa.RecordBatch | pa.Table,
    schema: RecordSchema,
    store: LargeValueStore,
    allowance: Allowance,
    *,
    continues: bool = False,
) -> Decoded:
    """Decodes records, fetches the large values that they refer to, and decodes them again with these. `continues`: see
    Decoder.decode. Raises TransientError."""
    decoded = decoder.decode(raw, schema, continues=continues)
    if not decoded.references:
        return decoded
    values: LargeValues = store.fetch(decoded.references, allowance)
    again = decoder.decode(raw, schema, values, continues=True)
    return replace(again, has_too_many_large_values=allowance.was_exceeded)


def _read(file: pa.NativeFile, size: int, allowance: Allowance) -> bytes:
    try:
        content: bytes = file.read()
    except OSError:
        allowance.give_back(size)
        raise
    return content


def _check_permission(files: fs.FileSystem, bucket: str, key: str) -> None:
    """Raises TransientError if the service may not read objects in the same place as this one."""
    folder, slash, _ = key.rpartition("/")
    try:
        with files.open_input_file(f"{bucket}/{folder}{slash}{_PROBE}"):
            pass
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _failed(bucket, error) from None


def _error_name(error: OSError) -> str:
    """AWS's name of the error, without the object's key, which the error's text has."""
    named = _AWS_ERROR.search(str(error))
    return named[1] if named else type(error).__name__


def _failed(bucket: str, error: OSError) -> TransientError:
    """The service's error, without the object's key, which records bring."""
    if isinstance(error, FileNotFoundError):
        return TransientError(
            "large-messages-bucket",
            f"the store of large messages has no bucket {bucket}",
            "check large_messages.endpoint and large_messages.region",
        )
    return TransientError(
        "large-messages-store",
        f"the store of large messages did not return an object of the bucket {bucket} ({_error_name(error)})",
        "check that it runs, that large_messages has its endpoint and region, and that the service may read (GetObject)"
        " and list (ListBucket) the bucket",
    )


@lru_cache(maxsize=8)
def _file_system(client: tuple[tuple[str, str | bool], ...]) -> fs.FileSystem:
    """Cached by its options, so that its connections are reused."""
    return fs.S3FileSystem(
        **dict(client),
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
    )
