"""All checks of `doctor`, in the order in which a start of the service would fail at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from distributary.config import Config
from distributary.preflight.check_result import Check, CheckResult, run_checks
from distributary.preflight.columns_check import columns_are_known
from distributary.preflight.kafka_checks import clocks_agree, kafka_answers, registry_answers, topics_are_readable
from distributary.preflight.machine_checks import jars_are_there, java_is_there, memory_suffices, time_zone_is_utc
from distributary.preflight.s3_identity import identities_agree, uses_s3
from distributary.preflight.storage_checks import checkpoint_is_ours, disk_has_room, driver_is_known, target_is_writable


def examine(config: Config, show: Callable[[str], None] = lambda _check: None) -> Iterator[CheckResult]:
    """Runs the checks and yields each result at once; `show` is given the name of each check before it runs."""
    return run_checks(checks_of(config), show)


def checks_of(config: Config) -> Iterator[Check]:
    """The checks that apply to a config, not run yet."""
    registry = config.source.schema_registry
    yield Check("java", java_is_there)
    yield Check("jars", jars_are_there)
    yield Check("memory", lambda: memory_suffices(config.spark_properties()))
    yield Check("time zone", time_zone_is_utc)
    yield Check("kafka", lambda: kafka_answers(config))
    yield Check("topics", lambda: topics_are_readable(config), needs=("kafka",))
    yield Check("clock", lambda: clocks_agree(config), needs=("topics",))
    if registry is not None:
        yield Check("registry", lambda: registry_answers(registry))
    if uses_s3(config):
        yield Check("identity", lambda: identities_agree(config))
    yield Check("target", lambda: target_is_writable(config))
    yield Check("columns", lambda: columns_are_known(config), needs=("topics", "registry", "target"))
    yield Check("disk", lambda: disk_has_room(config))
    yield Check("checkpoint", lambda: checkpoint_is_ours(config))
    yield Check("driver", lambda: driver_is_known(config), needs=("target",))
