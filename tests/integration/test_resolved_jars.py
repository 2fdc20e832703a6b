"""The declared jars in a real repository."""

from __future__ import annotations

from tests.support.jar_audit import unknown
from tests.support.jar_coordinates import read_jar

from distributary.launch.ivy import artifact_name, pyspark_jars
from distributary.launch.jars import declared


def test_the_jars_are_the_declared_ones_and_nothing_else() -> None:
    bundle = declared()
    assert sorted(artifact_name(file) for file in bundle.cached().glob("*.jar")) == sorted(bundle.parts)


def test_none_of_them_stands_in_front_of_one_of_pysparks() -> None:
    mine = {artifact_name(file) for file in declared().cached().glob("*.jar")}
    theirs = {artifact_name(file) for file in pyspark_jars().glob("*.jar")}
    assert theirs
    assert mine.isdisjoint(theirs)


def test_of_each_it_is_known_what_a_database_of_weaknesses_calls_it() -> None:
    read = [read_jar(file) for file in declared().cached().glob("*.jar")]
    assert unknown(read) == []
    assert "pkg:maven/org.apache.kafka/kafka-clients" in {one.itself.purl.partition("@")[0] for one in read}
