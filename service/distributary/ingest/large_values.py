"""Fetches large values that the connector stored in buckets, and decodes records with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar
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
_RECORDS_AT_ONCE = 64
"""Records whose values are asked for together."""
_VALUES_OF_A_BATCH = 2
"""How many of the largest values fit in one batch."""
_TOO_MANY = (
    f"the large values of its record, or of its batch, have more bytes than {_VALUES_OF_A_BATCH} times"
    " large_messages.max_bytes"
)
"""Seen only of a batch of one record, as others are halved, and in a replay: then a later one may apply the record."""
_AWS_ERROR = re.compile(r"AWS Error ([A-Z_]+|\[code [0-9]+\])")
_REFUSED = re.compile(
    r"AWS Error (?:ACCESS_DENIED|UNKNOWN \(HTTP status 40[03]\)|\[code [0-9]+\])|Failed to flush response stream"
)
"""The store refuses one object or all. S3's own errors are numbers in pyarrow, such as 136 of an archived object; those
of KMS are unknown. If the answer with the reason is longer than the object, pyarrow fails with its response stream."""
_PROBE = "distributary-permission-check"
"""The name of an object that does not exist. A store answers so only if the service may read objects in this place."""


class Allowance:
    """So many bytes of large values may be fetched."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.was_exceeded = False

    def spend(self, size: int) -> bool:
        """Whether so many bytes are left; then they are taken."""
        if size > self.left:
            self.was_exceeded = True
            return False
        self.left -= size
        return True


_Answer = TypeVar("_Answer")


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

    def fetch(self, needed: Sequence[frozenset[str]], allowance: Allowance) -> dict[str, bytes | Unreadable]:
        """The values that records need (a set of `BUCKET|KEY` for each record), or why they can't be fetched. Each is
        requested once, and again if only this object may be refused. Those of a record are fetched together or not at
        all: else the allowance may be spent on parts of several records, none of which could be applied. Raises
        TransientError if the store does not answer, or refuses all objects."""
        values: dict[str, bytes | Unreadable] = {}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for start in range(0, len(needed), _RECORDS_AT_ONCE):
                records = needed[start : start + _RECORDS_AT_ONCE]
                new = sorted(frozenset().union(*records) - values.keys())
                opened = dict(zip(new, pool.map(self._open, new), strict=True))
                affordable = _affordable(records, opened, values, allowance)
                read = dict(zip(affordable, pool.map(self._read, affordable.values()), strict=True))
                # The store may refuse an object of which it has told the size.
                allowance.left += sum(
                    affordable[place].size for place, value in read.items() if isinstance(value, Unreadable)
                )
                values |= {place: value for place, value in opened.items() if isinstance(value, Unreadable)} | read
        too_many = Unreadable(_TOO_MANY)
        return {place: too_many for places in needed for place in places} | values

    def _open(self, place: str) -> LargeValue | Unreadable:
        """Learns the value's size."""
        bucket, _, key = place.partition("|")
        if bucket not in self.buckets:
            return Unreadable(f"large_messages.buckets does not have its bucket {bucket}")
        files = _file_system(self.client)

        def open_object() -> LargeValue | Unreadable:
            file = files.open_input_file(f"{bucket}/{key}")
            size = file.size()
            if size > self.value_bytes:
                return Unreadable(f"it has {size} bytes, more than large_messages.max_bytes")
            return LargeValue(bucket, key, file, size)

        return _request(open_object, files, bucket, key)

    def _read(self, value: LargeValue) -> bytes | Unreadable:
        def content() -> bytes:
            read: bytes = value.file.read_at(value.size, 0)
            if len(read) != value.size:
                raise OSError("the object ended early")
            return read

        return _request(content, _file_system(self.client), value.bucket, value.key)


@dataclass(frozen=True)
class LargeValue:
    """A value of `size` bytes that can be read."""

    bucket: str
    key: str
    file: pa.NativeFile
    size: int


def _affordable(
    records: Iterable[frozenset[str]],
    opened: Mapping[str, LargeValue | Unreadable],
    values: Mapping[str, bytes | Unreadable],
    allowance: Allowance,
) -> dict[str, LargeValue]:
    """Those of the opened values that are to be read: of records for which the allowance suffices, and all of whose
    values can be had. `values` were read before."""
    paid: dict[str, LargeValue] = {}
    for places in records:
        unpaid = {place: opened.get(place, values.get(place)) for place in places - paid.keys()}
        if any(value is None or isinstance(value, Unreadable) for value in unpaid.values()):
            continue
        new = {place: value for place, value in unpaid.items() if isinstance(value, LargeValue)}
        if allowance.spend(sum(value.size for value in new.values())):
            paid |= new
    return paid


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


def _request(request: Callable[[], _Answer], files: fs.FileSystem, bucket: str, key: str) -> _Answer | Unreadable:
    """The store's answer to a request for this object. A request that is refused is made again once it is known that
    the service may read others: a refusal of this object alone would never end, and must not hold up the table."""
    for is_allowed in (False, True):
        try:
            try:
                return request()
            except FileNotFoundError:
                if files.get_file_info(bucket).type == fs.FileType.NotFound:
                    raise
                return Unreadable(f"its object is not in the bucket {bucket}")
        except pa.ArrowInvalid:
            return Unreadable(f"its key is none that objects of the bucket {bucket} can have")
        except OSError as error:
            if not _REFUSED.search(str(error)):
                raise _failed(bucket, error) from None  # its text has the object's key
            name = _error_name(error)
        if not is_allowed:
            _check_permission(files, bucket, key)
    return Unreadable(
        f"the store refuses this object of the bucket {bucket} ({name}) and answers for others:"
        " it may be archived, or its policy or its encryption key (KMS) excludes the service"
    )


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
