"""Large values are fetched once for a batch, within bounds, and only from buckets that the config names."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs
from pydantic import SecretStr
from tests.support.decoding import plain_change, raw_table, rejections
from tests.support.learning import learn

from distributary.config.large_messages import LargeMessages
from distributary.decode.decoder import Decoded, Decoder
from distributary.decode.large_values import Unreadable
from distributary.decode.options import DecodeOptions
from distributary.errors import TransientError
from distributary.ingest import large_values
from distributary.ingest.large_values import LargeValueStore, decode_with_large_values

KEY = "connector=sqlserver/table=docs/doc/after"


class Bucket:
    """Files below a folder, with an error at will, and a count of what is opened."""

    def __init__(self, folder: Path) -> None:
        self.files = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
        self.error: Exception | None = None
        self.refused: dict[str, str] = {}
        """Errors of single objects, by their path."""
        self.unreadable: set[str] = set()
        """Objects that are opened and not read."""
        self.opened: Counter[str] = Counter()
        self.read: Counter[str] = Counter()
        self.get_file_info = self.files.get_file_info

    def open_input_file(self, path: str) -> pa.NativeFile:
        self.opened[path] += 1
        if self.error is not None:
            raise self.error
        if path in self.refused:
            raise OSError(self.refused[path])
        return OpenedFile(self, path)


class OpenedFile:
    """A file that was opened; an archived one is refused when it is read."""

    def __init__(self, bucket: Bucket, path: str) -> None:
        self.bucket, self.path = bucket, path
        self.file = bucket.files.open_input_file(path)
        self.size = self.file.size

    def __enter__(self) -> OpenedFile:
        return self

    def __exit__(self, *_error: object) -> None:
        self.file.close()

    def read_at(self, size: int, offset: int) -> bytes:
        if self.path in self.bucket.unreadable:
            raise OSError(REFUSALS["archived"])
        self.bucket.read[self.path] += 1
        content: bytes = self.file.read_at(size, offset)
        return content


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    (tmp_path / "docs").mkdir()
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "payroll").write_bytes(b"not for everyone")
    handler = Bucket(tmp_path)
    monkeypatch.setattr(large_values, "_file_system", lambda _client: handler)
    return handler


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, bytes], str]:
    def put(name: str, content: bytes) -> str:
        path = tmp_path / "docs" / f"connector=sqlserver/table=docs/{name}/after"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return f"docs|connector=sqlserver/table=docs/{name}/after"

    return put


def store(value_bytes: int = 1_000) -> LargeValueStore:
    return LargeValueStore(frozenset(("docs",)), value_bytes, ())


def decoded(values: list[str], value_bytes: int = 1_000) -> Decoded:
    raw = raw_table(plain_change(index, {"id": index, "doc": value}) for index, value in enumerate(values))
    decoder = Decoder(DecodeOptions("sqlserver"))
    found = store(value_bytes)
    return decode_with_large_values(decoder, raw, learn(decoder, raw), found, found.allowance())


def reference(place: str) -> str:
    return f"__debezium:s3:ref:v1:{place}"


Put = Callable[[str, bytes], str]


def test_each_value_is_asked_for_once(bucket: Bucket, put: Put) -> None:
    one, other = put("one", b"1"), put("other", b"22")
    found = decoded([*[reference(one)] * 3, reference(other), "small"])
    assert [row["doc"] for row in found.events["row"].to_pylist()] == ["1", "1", "1", "22", "small"]
    assert set(bucket.opened.values()) == {1}
    assert len(bucket.opened) == 2
    assert not found.has_too_many_large_values


def test_nothing_is_asked_for_without_references(bucket: Bucket) -> None:
    assert rejections(decoded(["a", "b"])) == {}
    assert not bucket.opened


def test_only_the_buckets_of_the_config_are_read(bucket: Bucket) -> None:
    found = decoded([reference("secrets|payroll")])
    assert rejections(found) == {0: "large-value-unreadable"}
    assert (
        found.rejected["message"]
        .to_pylist()[0]
        .endswith("doc: large_messages.buckets does not have its bucket secrets")
    )
    assert not bucket.opened


@pytest.mark.usefixtures("bucket")
def test_objects_that_are_missing_or_too_large_are_named(put: Put) -> None:
    at_limit, above = put("at", b"x" * 1_000), put("above", b"x" * 1_001)
    found = decoded([reference(at_limit), reference(above), reference("docs|a=b/doc/after"), "small"])
    assert rejections(found) == dict.fromkeys((1, 2), "large-value-unreadable")
    assert [text.rpartition("doc: ")[2] for text in found.rejected["message"].to_pylist()] == [
        "it has 1001 bytes, more than large_messages.max_bytes",
        "its object is not in the bucket docs",
    ]


@pytest.mark.usefixtures("bucket")
def test_a_batch_has_a_bound_of_bytes(put: Put) -> None:
    places = [put(str(number), b"x" * 700) for number in range(3)]
    found = decoded([*map(reference, places), "small"])
    assert found.has_too_many_large_values
    assert found.events.num_rows == 3
    assert sum(len(row["doc"]) for row in found.events["row"].to_pylist()) <= 2 * 1_000
    assert not decoded([*map(reference, places[:2])]).has_too_many_large_values


@pytest.mark.usefixtures("bucket")
def test_a_record_above_the_bound_of_a_batch_says_so_of_itself(put: Put) -> None:
    row = {"id": 1, **{f"doc{n}": reference(put(str(n), b"x" * 700)) for n in range(3)}}
    raw, decoder = raw_table([plain_change(0, row)]), Decoder(DecodeOptions("sqlserver"))
    found = decode_with_large_values(decoder, raw, learn(decoder, raw), store(), store().allowance())
    assert rejections(found) == {0: "large-value-unreadable"}
    assert (
        found.rejected["message"]
        .to_pylist()[0]
        .endswith(
            ": the large values of its record, or of its batch, have more bytes than 2 times large_messages.max_bytes"
        )
    )


@pytest.mark.usefixtures("bucket")
def test_the_bound_is_spent_on_whole_records(put: Put) -> None:
    """A record of which one value was fetched can't be applied; with the first values of all, no record could be."""
    rows = [
        {"id": index, **{f"doc{n}": reference(put(f"{'cbagfed'[index]}{n}", b"x" * 350)) for n in range(2)}}
        for index in range(7)
    ]
    raw, decoder = (
        raw_table(plain_change(index, row) for index, row in enumerate(rows)),
        Decoder(DecodeOptions("sqlserver")),
    )
    found = decode_with_large_values(decoder, raw, learn(decoder, raw), store(), store().allowance())
    assert found.has_too_many_large_values
    assert rejections(found) == dict.fromkeys(range(2, 7), "large-value-unreadable")


def decoded_rows(*rows: list[str]) -> Decoded:
    """Records with these values in columns of their own."""
    raw = raw_table(
        plain_change(index, {"id": index, **{f"doc{n}": value for n, value in enumerate(values)}})
        for index, values in enumerate(rows)
    )
    decoder = Decoder(DecodeOptions("sqlserver"))
    return decode_with_large_values(decoder, raw, learn(decoder, raw), store(), store().allowance())


def test_values_that_can_not_be_had_leave_the_bound_to_others(bucket: Bucket, put: Put) -> None:
    """Else a replay, which takes records in the same order each time, would never come to those behind them."""
    large = [reference(put(f"large{n}", b"x" * 1_000)) for n in range(4)]
    lacking = [[value, reference("docs|a=b/doc/after")] for value in large[:2]]
    found = decoded_rows(*lacking, [large[2], "small"], [large[3], "small"])
    assert rejections(found) == dict.fromkeys((0, 1), "large-value-unreadable")
    assert not any("large0" in path or "large1" in path for path in bucket.read)


def test_bytes_of_values_that_are_refused_when_read_are_given_back(bucket: Bucket, put: Put) -> None:
    places = [put(f"archived{n}", b"x" * 1_000) for n in range(2)]
    bucket.unreadable.update(place.replace("|", "/") for place in places)
    found = store().allowance()
    values = store().fetch([frozenset((place,)) for place in places], found)
    assert all(isinstance(value, Unreadable) for value in values.values())
    assert found.left == 2 * 1_000


def test_a_value_that_a_too_large_record_shares_with_another_is_read_for_that(bucket: Bucket, put: Put) -> None:
    places = [reference(put(str(n), b"x" * 900)) for n in range(3)]
    found = decoded_rows(places, [places[0], "small"])
    assert rejections(found) == {0: "large-value-unreadable"}
    assert len(bucket.read) == 1


REFUSALS = {
    "policy": "AWS Error ACCESS_DENIED during HeadObject operation: No response body. {}",
    "archived": "AWS Error [code 136] during GetObject operation: not valid for the storage class. {}",
    "kms-disabled": "AWS Error UNKNOWN (HTTP status 400) during GetObject operation: the key {} is disabled",
    "longer-than-the-object": "AWS Error INTERNAL_FAILURE during GetObject operation: Failed to flush response stream",
}


@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("others", [[], ["small"]], ids=["alone", "among others"])
def test_an_object_that_alone_is_refused_rejects_its_record(
    bucket: Bucket, put: Put, error: str, others: list[str]
) -> None:
    refused, good = put("refused", b"1"), put("good", b"22")
    path = refused.replace("|", "/")
    bucket.refused[path] = error.format(path)
    found = decoded([reference(refused), *([reference(good), *others] if others else [])])
    assert rejections(found) == {0: "large-value-unreadable"}
    assert [row["doc"] for row in found.events["row"].to_pylist()] == (["22", "small"] if others else [])
    [message] = found.rejected["message"].to_pylist()
    assert "doc: the store refuses this object of the bucket docs" in message
    assert "refused/after" not in message


def test_an_object_that_is_given_after_all_is_taken(bucket: Bucket, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    place = put("one", b"1")
    path = place.replace("|", "/")
    bucket.refused[path] = REFUSALS["policy"]
    given = bucket.open_input_file

    def open_input_file(wanted: str) -> pa.NativeFile:
        try:
            return given(wanted)
        finally:
            bucket.refused.clear()

    monkeypatch.setattr(bucket, "open_input_file", open_input_file)
    assert [row["doc"] for row in decoded([reference(place)]).events["row"].to_pylist()] == ["1"]


@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS)
def test_a_store_that_refuses_every_object_is_asked_again_later(bucket: Bucket, put: Put, error: str) -> None:
    places = [put(name, b"1") for name in ("one", "other")]
    bucket.error = OSError(error.format("a=b"))
    with pytest.raises(TransientError) as raised:
        decoded([*map(reference, places)])
    assert raised.value.code == "large-messages-store"
    assert "a=b" not in str(raised.value)


@pytest.mark.parametrize(
    ("error", "code", "result"),
    [
        (
            OSError("AWS Error NETWORK_CONNECTION during HeadObject: key a=b"),
            "large-messages-store",
            "NETWORK_CONNECTION",
        ),
        (OSError("AWS Error ACCESS_DENIED during HeadObject"), "large-messages-store", "ACCESS_DENIED"),
        (TimeoutError(), "large-messages-store", "TimeoutError"),
    ],
)
def test_a_store_that_does_not_answer_is_asked_again_later(
    bucket: Bucket, put: Put, error: Exception, code: str, result: str
) -> None:
    place = put("one", b"1")
    bucket.error = error
    with pytest.raises(TransientError) as raised:
        decoded([reference(place)])
    assert raised.value.code == code
    assert result in raised.value.message
    assert "a=b" not in str(raised.value)


@pytest.mark.usefixtures("bucket")
def test_a_bucket_that_is_not_there_rejects_no_record(tmp_path: Path) -> None:
    (tmp_path / "docs").rmdir()
    with pytest.raises(TransientError) as raised:
        decoded([reference(f"docs|{KEY}")])
    assert raised.value.code == "large-messages-bucket"


def test_the_client_is_made_from_the_config_and_shows_no_secret() -> None:
    assert LargeValueStore.of(None) is None
    settings = LargeMessages.model_validate({"buckets": ["docs"], "region": "eu-west-1"})
    assert LargeValueStore.of(settings) == LargeValueStore(frozenset(("docs",)), 2**26, (("region", "eu-west-1"),))
    key = {"access_key_id": "me", "secret_access_key": SecretStr("hush")}
    own = LargeMessages.model_validate({"buckets": ["docs"], "endpoint": "http://minio:9000", **key})
    found = LargeValueStore.of(own)
    assert found is not None
    assert dict(found.client) == {
        "access_key": "me",
        "secret_key": "hush",
        "scheme": "http",
        "endpoint_override": "minio:9000",
        "force_virtual_addressing": False,
    }
    assert "hush" not in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found
