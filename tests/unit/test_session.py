"""The options with which Spark's JVM is started."""

from __future__ import annotations

import pytest

from distributary.launch.session import collector

PARALLEL = "-XX:+UseParallelGC"


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]"])
def test_a_driver_that_does_the_work_has_a_collector_for_throughput(master: str) -> None:
    assert collector({"spark.master": master}, {}) == PARALLEL
    other = {"spark.driver.extraJavaOptions": "-XX:MaxGCPauseMillis=200 -Da=b", "spark.executor.extraJavaOptions": "x"}
    assert collector({"spark.master": master, **other}, {"JAVA_TOOL_OPTIONS": "-Dc=d"}) == PARALLEL


@pytest.mark.parametrize("master", ["spark://10.0.0.1:7077", "k8s://https://10.0.0.1", "yarn"])
def test_where_executors_do_the_work_it_is_java_that_chooses(master: str) -> None:
    assert collector({"spark.master": master}, {}) == ""


@pytest.mark.parametrize("named", ["-XX:+UseG1GC", "-XX:+UseZGC -XX:+ZGenerational", "-Da=b -XX:+UseSerialGC"])
@pytest.mark.parametrize("place", ["spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"])
def test_one_that_the_config_names_stays(named: str, place: str) -> None:
    assert collector({"spark.master": "local[*]", place: named}, {}) == ""


@pytest.mark.parametrize("variable", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_one_that_the_environment_names_stays(variable: str) -> None:
    assert collector({"spark.master": "local[*]"}, {variable: "-XX:+UseShenandoahGC"}) == ""
