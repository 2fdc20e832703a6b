"""Connector settings in the config have Debezium's names and values."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from distributary.config.source import Source


def properties(**given: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return Source.model_validate({"topic_prefix": "server1", "connector_properties": named}).connector_properties


def test_known_values_are_the_same_in_capitals() -> None:
    found = properties(binary_handling_mode=" HEX", time_precision_mode="Connect", column_mask_hash="A, B")
    assert found == {"binary.handling.mode": "hex", "time.precision.mode": "connect", "column.mask.hash": "A, B"}


def test_the_modes_of_newer_connectors_are_known() -> None:
    assert properties(time_precision_mode="structured") == {"time.precision.mode": "structured"}


def test_a_placeholder_may_be_given_as_bytes() -> None:
    assert properties(unavailable_value_placeholder="hex:41")
    with pytest.raises(ValidationError, match="no hexadecimal digits"):
        properties(unavailable_value_placeholder="hex:4")


def test_a_value_that_is_nearly_one_is_reported() -> None:
    with pytest.raises(ValidationError) as error:
        properties(decimal_handling_mode="percise")
    assert error.value.errors()[0]["ctx"]["fix"] == "did you mean precise?"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("time_precison_mode", "time.precision.mode"),
        ("decimal_handling", "decimal.handling.mode"),
        ("Binary_Handling_Mode", "binary.handling.mode"),
        ("unavailable_placeholder", "unavailable.value.placeholder"),
    ],
)
def test_a_name_that_is_nearly_one_is_reported_as_values_would_be_read_otherwise(written: str, meant: str) -> None:
    with pytest.raises(ValidationError) as error:
        properties(**{written: "hex"})
    assert error.value.errors()[0]["ctx"]["fix"] == f"write {meant}"


def test_other_settings_of_the_connector_may_stand_there() -> None:
    others = ("delete_handling_mode", "hstore_handling_mode", "snapshot_isolation_mode", "event_handling_mode")
    assert len(properties(**dict.fromkeys(others, "x"))) == len(others)
