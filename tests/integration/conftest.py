"""A separate topic and table for each test, on either of the two Kafkas."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.memory_kafka import drop_address, new_address
from tests.support.spark import Bench, new_bench


@pytest.fixture
def memory_kafka() -> Iterator[str]:
    """The address of an empty Kafka in this process's memory."""
    address = new_address()
    yield address
    drop_address(address)


@pytest.fixture
def make_bench(session: SparkSession, memory_kafka: str, tmp_path: Path) -> Callable[..., Bench]:
    """Makes benches whose records stay in this process's memory; it takes what new_bench() takes behind the folder."""
    return partial(new_bench, session, memory_kafka, tmp_path)


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    """A topic, which is not created yet, and its table; the records stay in this process's memory."""
    return make_bench()


@pytest.fixture
def kafka_bench(session: SparkSession, kafka: str, tmp_path: Path) -> Bench:
    """The same on a real Kafka: for tests of topics and offsets, of what Kafka's clients meet, and of what connects to
    Kafka by itself, as commands do."""
    return new_bench(session, kafka, tmp_path)


@pytest.fixture
def signal_handlers() -> Iterator[None]:
    """The service listens for signals: afterwards they do again what they did before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
