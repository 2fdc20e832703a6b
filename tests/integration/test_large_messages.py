"""Values that the connector stored in a bucket are fetched, by the driver and by Spark's tasks."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from tests.support.changes import LONG, TEXT, Topic, key
from tests.support.s3 import BUCKET, CREDENTIALS, REGION, Store, running_s3
from tests.support.spark import Bench, rows_of

from distributary.ingest import raw_records

MOST = 2**20
TEXT_KEY, BYTES_KEY = "server1.dbo.t/v/1", "server1.dbo.t/b/1"
LARGE = "a large text \u00fc" * 1_000
SCHEMA = {"id": LONG, "v": TEXT, "b": {"type": "bytes"}}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A bucket with a text, some bytes and an object that is too large."""
    with running_s3(tmp_path_factory.mktemp("s3")) as running:
        files = fs.S3FileSystem(
            access_key=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            secret_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            region=REGION,
            endpoint_override=running.endpoint,
            force_virtual_addressing=False,
        )
        objects = {TEXT_KEY: LARGE.encode(), BYTES_KEY: b"\x00\xff" * 500, "large": b"x" * (MOST + 1)}
        for name, content in objects.items():
            with files.open_output_stream(f"{BUCKET}/{name}") as file:
                file.write(content)
        yield running


@pytest.fixture
def bucket_bench(make_bench: Callable[..., Bench], store: Store, tmp_path: Path) -> Bench:
    """The bench of a service that may read the bucket."""
    secret = tmp_path / "secret"
    secret.write_text(CREDENTIALS["AWS_SECRET_ACCESS_KEY"], encoding="utf-8")
    large_messages: dict[str, Any] = {
        "buckets": [BUCKET],
        "region": REGION,
        "endpoint": store.endpoint,
        "access_key_id": CREDENTIALS["AWS_ACCESS_KEY_ID"],
        "secret_access_key": f"${{file:{secret}}}",
        "max_bytes": MOST,
    }
    return make_bench({"large_messages": large_messages}).create()


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
    bucket_bench.take(topic.records)
    assert rows_of(bucket_bench.table, "id", "v", "b") == [
        (1, LARGE, b"\x00\xff" * 500),
        (2, "small", b"small"),
        (3, LARGE, None),
    ]
    assert rows_of(bucket_bench.quarantine, "offset", "reason") == [
        (offset, "large-value-unreadable") for offset in (3, 4, 5)
    ]
