"""What tests of every kind share."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from tests.support.jvm import short_lived
from tests.support.random_share import Scale, scale_by
from tests.support.scheduling import OneByOne
from tests.support.seconds import SecondsPlugin
from tests.support.shared_servers import ADDRESS, SharedServers, address_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.support.registry import RegistryAddress

# Most processes of the tests live for some minutes, as the demo's does; for others see tests/support/jvm.py.
os.environ.setdefault("JAVA_TOOL_OPTIONS", short_lived())
# How long an example takes says something about the machine alone.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--seconds`: see tests/support/seconds.py. `--random-share`: see tests/support/random_share.py."""
    parser.addoption("--seconds", action="store_true", help="print where the seconds of the run went")
    parser.addoption(
        "--random-share", type=float, default=1.0, help="the share of the random cases that tests in Python play"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Tests in the background of a shell would ignore Ctrl-C, and so would all that they start and stop by it."""
    config.pluginmanager.register(SecondsPlugin(config.getoption("--seconds")), "seconds")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SharedServers({"kafka": _kafka, "registry": _registry}), ADDRESS)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# What only some processes need is imported by them: the controlling one starts the others, which wait for it.


def _kafka(directory: Path) -> AbstractContextManager[str]:
    from tests.support.kafka import running_kafka

    return running_kafka(directory)


def _registry(directory: Path) -> AbstractContextManager[str]:
    from tests.support.registry import running_registry

    return running_registry(directory)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests and modules are made here, and none goes: looking for garbage would take seconds of each
    process, and again and again later on. Tests make little garbage that counting references does not find: a tenth of
    a run went into looking for it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneByOne:
    """Under `-n`: see tests/support/scheduling.py."""
    return OneByOne(config, log)


@pytest.fixture(scope="session")
def scale(pytestconfig: pytest.Config) -> Scale:
    """How many of its random cases a test plays: all without the option `--random-share`."""
    return scale_by(pytestconfig.getoption("--random-share"))


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config) -> str:
    """The address of a Kafka that all tests of the run share: each takes topics of its own. Topics are not made by
    themselves."""
    return address_of(pytestconfig, "kafka")


@pytest.fixture(scope="session")
def registry(pytestconfig: pytest.Config) -> RegistryAddress:
    """A schema registry that all tests of the run share: each takes subjects of its own."""
    from tests.support.registry import RegistryAddress

    return RegistryAddress(address_of(pytestconfig, "registry"))


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """The service's own Spark session, in this process."""
    from tests.support.spark import running_session

    yield from running_session()
