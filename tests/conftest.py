"""What tests of every kind share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.kafka import running_kafka


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Kafka that all tests share: each takes topics of its own. Topics are not made by themselves."""
    with running_kafka(tmp_path_factory.mktemp("kafka")) as bootstrap:
        yield bootstrap
