"""Values that the connector stored in a bucket are fetched, by the driver and by Spark's tasks."""

from __future__ import annotations

import base64
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from tests.support.changes import LONG, TEXT, Topic, key
from tests.support.s3 import BUCKET, CREDENTIALS, REGION, Store, running_s3
from tests.support.spark import Bench, rows_of

from distributary.halt_actions import ResumeAction
from distributary.ingest import raw_records
from distributary.ingest.tables import find_table, list_tables
from distributary.verify.check import VerifyOptions, report
from distributary.verify.report import State

MOST = 2**20
TEXT_KEY, BYTES_KEY = "server1.dbo.t/v/1", "server1.dbo.t/b/1"
LARGE = "a large text \u00fc" * 1_000
SCHEMA = {"id": LONG, "v": TEXT, "b": {"type": "bytes"}}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A bucket with a text, some bytes, an object that is too large and two that S3 refuses."""
    with running_s3(tmp_path_factory.mktemp("s3")) as running:
        put(running, TEXT_KEY, LARGE.encode())
        put(running, BYTES_KEY, b"\x00\xff" * 500)
        put(running, "large", b"x" * (MOST + 1))
        for name, content in (("archived/short", b"x"), ("archived/long", b"x" * 10_000)):
            put_archived(running, name, content)
        yield running


def put(store: Store, name: str, content: bytes) -> None:
    """Puts an object into the bucket."""
    files = fs.S3FileSystem(
        access_key=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        secret_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        region=REGION,
        endpoint_override=store.endpoint,
        force_virtual_addressing=False,
    )
    with files.open_output_stream(f"{BUCKET}/{name}") as file:
        file.write(content)


def put_archived(store: Store, name: str, content: bytes) -> None:
    """Puts an object that S3 gives to nobody before it is restored."""
    headers = {"Content-Type": "application/octet-stream", "x-amz-storage-class": "GLACIER"}
    request = urllib.request.Request(f"{store.endpoint}/{BUCKET}/{name}", content, headers, method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200


@pytest.fixture
def bucket_bench(make_bench: Callable[..., Bench], large_messages: dict[str, Any]) -> Bench:
    """The bench of a service that may read the bucket."""
    return make_bench({"large_messages": large_messages}).create()


@pytest.fixture
def large_messages(store: Store, tmp_path: Path) -> dict[str, Any]:
    """The config of a service that may read the bucket."""
    secret = tmp_path / "secret"
    secret.write_text(CREDENTIALS["AWS_SECRET_ACCESS_KEY"], encoding="utf-8")
    return {
        "buckets": [BUCKET],
        "region": REGION,
        "endpoint": store.endpoint,
        "access_key_id": CREDENTIALS["AWS_ACCESS_KEY_ID"],
        "secret_access_key": f"${{file:{secret}}}",
        "max_bytes": MOST,
    }


def reference(name: str, bucket: str = BUCKET) -> str:
    return f"__debezium:s3:ref:v1:{bucket}|{name}"


def change(topic: Topic, number: int, text: str, content: str | None = None) -> None:
    """A row's create; `content`: what is written for its bytes."""
    encoded = None if content is None else base64.b64encode(content.encode()).decode()
    topic.with_schema(topic.change("c", key(number), {"id": number, "v": text, "b": encoded}, at=number), SCHEMA)


@pytest.mark.parametrize("by_spark", [False, True], ids=["driver", "tasks"])
def test_large_values_are_fetched(bucket_bench: Bench, monkeypatch: pytest.MonkeyPatch, *, by_spark: bool) -> None:
    if by_spark:
        monkeypatch.setattr(raw_records, "LOCAL_RECORDS", 2)
    topic = Topic(bucket_bench.topic)
    change(topic, 1, reference(TEXT_KEY), reference(BYTES_KEY))
    change(topic, 2, "small", "small")
    change(topic, 3, reference(TEXT_KEY))
    change(topic, 4, reference("missing"))
    change(topic, 5, reference(TEXT_KEY, "another"))
    change(topic, 6, reference("large"))
    change(topic, 7, reference("archived/short"))
    change(topic, 8, reference("archived/long"))
    bucket_bench.take(topic.records)
    assert rows_of(bucket_bench.table, "id", "v", "b") == [
        (1, LARGE, b"\x00\xff" * 500),
        (2, "small", b"small"),
        (3, LARGE, None),
    ]
    assert rows_of(bucket_bench.quarantine, "offset", "reason") == [
        (offset, "large-value-unreadable") for offset in range(3, 8)
    ]


def text_of(number: int) -> str:
    """A text of which a batch may have two."""
    return f"{number}" * (7 * MOST // 10)


@pytest.mark.parametrize("by_spark", [False, True], ids=["driver", "tasks"])
def test_a_batch_with_too_many_bytes_is_halved(
    bucket_bench: Bench, store: Store, monkeypatch: pytest.MonkeyPatch, *, by_spark: bool
) -> None:
    if by_spark:
        monkeypatch.setattr(raw_records, "LOCAL_RECORDS", 2)
    topic = Topic(bucket_bench.topic)
    for number in range(7):
        put(store, f"halved/{number}", text_of(number).encode())
        change(topic, number, reference(f"halved/{number}"))
    bucket_bench.take(topic.records)
    assert rows_of(bucket_bench.table, "id", "v") == [(number, text_of(number)) for number in range(7)]
    assert not bucket_bench.quarantine.exists()


def test_verify_and_replay_fetch_large_values_within_the_bound(
    kafka_bench: Bench, store: Store, large_messages: dict[str, Any]
) -> None:
    """`verify` halves batches, too. A replay takes records until the bound, also one that needs all of it."""
    kafka_bench.options = {"large_messages": large_messages}
    kafka_bench.create()
    topic = Topic(kafka_bench.topic)
    for number in range(5):
        put(store, f"first/{number}", text_of(number).encode())
        change(topic, number, reference(f"first/{number}"))
    for number in (5, 6):
        change(topic, number, reference(f"later/{number}"), reference(f"later/{number}b"))
    kafka_bench.take(topic.records)
    assert rows_of(kafka_bench.table, "id") == [(number,) for number in range(5)]
    assert_equal(kafka_bench)

    for number in (5, 6):
        for name in (f"later/{number}", f"later/{number}b"):
            put(store, name, text_of(number).encode())
    assert_equal(kafka_bench)
    for replayed in (1, 2):
        worker = kafka_bench.worker()
        worker.resume(ResumeAction.REPLAY)
        kafka_bench.take([], worker)
        assert len(rows_of(kafka_bench.table, "id")) == 5 + replayed
    assert rows_of(kafka_bench.table, "id", "v", "b")[5:] == [
        (number, text_of(number), text_of(number).encode()) for number in (5, 6)
    ]
    assert_equal(kafka_bench)


def assert_equal(bench: Bench) -> None:
    """`verify` finds the table equal to its topic, without the records that wait in quarantine."""
    config = bench.config()
    kafka = bench.client(config)
    table = find_table("dbo.t", list_tables(config, kafka))
    found = report(config, table, bench.session, kafka, VerifyOptions(20, None), lambda _: None)
    assert (found.error, found.state) == (None, State.EQUAL)
