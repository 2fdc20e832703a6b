"""Who can connect to Spark."""

from __future__ import annotations

import pytest

from distributary.errors import SetupError
from distributary.launch.network import network_settings

ALL = ("spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled")


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4, 2]"])
def test_a_driver_that_works_by_itself_listens_on_loopback(master: str) -> None:
    assert network_settings(master, {}) == {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.authenticate": "true",
    }


@pytest.mark.parametrize(
    ("master", "settings"),
    [
        ("k8s://https://kubernetes.default.svc", {}),
        ("yarn", {}),
        ("spark://10.0.0.1:7077", {"spark.authenticate.secret": "s"}),
    ],
)
def test_executors_need_a_secret_and_are_sent_nothing_in_clear(master: str, settings: dict[str, str]) -> None:
    assert network_settings(master, settings) == dict.fromkeys(ALL, "true")


def test_a_standalone_cluster_without_a_secret_is_refused_unless_that_is_wanted() -> None:
    with pytest.raises(SetupError) as refused:
        network_settings("spark://10.0.0.1:7077", {})
    assert refused.value.code == "spark-without-secret"
    assert "spark.authenticate.secret" in refused.value.fix
    assert network_settings("spark://10.0.0.1:7077", {"spark.authenticate": "false"}) == dict.fromkeys(ALL, "false")
