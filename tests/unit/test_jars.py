"""The list of jars and their directory, without a JVM and without network."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from distributary.demo import broker
from distributary.errors import SetupError
from distributary.launch import ivy, jars
from distributary.launch.bundle import MANIFEST, Bundle, cache_directory
from distributary.launch.ivy import Artifact, artifact_name, module_xml, settings_xml, unresolved
from distributary.launch.jars import declared
from distributary.launch.java import java, major_version

SMALL = Bundle(
    "small",
    (Artifact("org.one", "one", "1.0"), Artifact("org.two", "two_2.13", "[2.0,3.0]")),
    parts=("one", "two_2.13", "three"),
)
FILES = {"one-1.0.jar": 3, "two_2.13-2.5.jar": 0, "three-0.1.jar": 7}
HASHES = {
    name: hashlib.sha256(content).hexdigest()
    for name, content in (("one-1.0.jar", b"abc"), ("two_2.13-2.5.jar", b""), ("three-0.1.jar", b"abcdefg"))
}
# Plays Java and Ivy: tells a version, else writes the files that Ivy would, and notes that it ran.
IVY_SCRIPT = """#!/bin/sh
[ "$1" = -version ] && { echo 'openjdk version "17.0.15" 2025-04-15' >&2; exit 0; }
echo ran >> "$RUNS"
[ -n "$FAILURE" ] && { echo "$FAILURE"; exit 1; }
while [ "$1" != -retrieve ]; do shift; done
into=$(dirname "$2")
mkdir -p "$into"
sleep 0.05
printf abc > "$into/one-1.0.jar"; : > "$into/two_2.13-2.5.jar"; printf abcdefg > "$into/three-0.1.jar"
"""


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often Ivy has run; what is called Java here is a script."""
    noted = tmp_path / "runs"
    executable(tmp_path / "jdk/bin/java", IVY_SCRIPT)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("RUNS", str(noted))
    monkeypatch.delenv("FAILURE", raising=False)
    return lambda: len(noted.read_text().splitlines()) if noted.exists() else 0


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")


def names(directory: Path) -> set[str]:
    return {file.name for file in directory.glob("*.jar")}


def test_versions_follow_from_spark_and_delta() -> None:
    assert [str(artifact) for artifact in jars.declared("4.2.0", "4.4.0").artifacts] == [
        "io.delta:delta-spark_4.2_2.13:4.4.0",
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:[4.0.0,4.2.0]",
    ]
    later = jars.declared("5.0.1", "5.1.0")
    assert later.artifacts[0] == Artifact("io.delta", "delta-spark_5.0_2.13", "5.1.0")
    assert later.artifacts[2].revision == "[5.0.0,5.0.1]"


def test_the_installed_versions_count() -> None:
    assert jars.declared() == jars.declared(version("pyspark"), version("delta-spark"))
    assert version("pyspark") in jars.declared().key
    assert version("delta-spark") in jars.declared().key


def test_what_pyspark_ships_is_not_fetched() -> None:
    bundle = jars.declared()
    shipped = {"hadoop-client-api", "slf4j-api", "log4j-core", "jackson-databind", "scala-library", "zstd-jni"}
    assert shipped < bundle.without
    assert bundle.without.isdisjoint(bundle.parts)


def test_another_list_has_another_directory() -> None:
    keys = {
        SMALL.key,
        Bundle("small", SMALL.artifacts).key,
        Bundle("small", SMALL.artifacts[:1], parts=SMALL.parts).key,
    }
    assert len(keys) == 3


def test_a_jar_that_somebody_adds_to_pyspark_changes_no_directory() -> None:
    assert Bundle("small", SMALL.artifacts, without=frozenset({"x"}), parts=SMALL.parts).key == SMALL.key


def test_a_declared_revision_holds_against_what_others_ask_for() -> None:
    asked = ElementTree.fromstring(module_xml(SMALL.artifacts, {"b", "a"}))
    wanted = [(d.get("org"), d.get("name"), d.get("rev")) for d in asked.iterfind("dependencies/dependency")]
    assert wanted == [("org.one", "one", "1.0"), ("org.two", "two_2.13", "[2.0,3.0]")]
    assert wanted == [(o.get("org"), o.get("module"), o.get("rev")) for o in asked.iterfind("dependencies/override")]
    assert [e.get("module") for e in asked.iterfind("dependencies/exclude")] == ["a", "b"]


def test_an_archive_is_asked_for_by_type_and_classifier_and_brings_nothing_else() -> None:
    asked = ElementTree.fromstring(module_xml([Artifact("org.x", "x", "1", type="tar.gz", classifier="plugin")], ()))
    [dependency] = asked.iterfind("dependencies/dependency")
    assert dependency.get("transitive") == "false"
    [artifact] = dependency
    classifier = artifact.get("{http://ant.apache.org/ivy/maven}classifier")
    assert (artifact.get("name"), artifact.get("type"), artifact.get("ext"), classifier) == (
        *("x", "tar.gz", "tar.gz"),
        "plugin",
    )


def test_a_mirror_takes_the_place_of_maven_central() -> None:
    [central] = ElementTree.fromstring(settings_xml("")).iterfind("resolvers/ibiblio")
    assert central.get("root") is None
    [mirror] = ElementTree.fromstring(settings_xml("https://mirror.example/maven?a&b")).iterfind("resolvers/ibiblio")
    assert mirror.get("root") == "https://mirror.example/maven?a&b/"


def test_each_artifact_that_could_not_be_had_is_named_once() -> None:
    error = unresolved(
        ":: resolving dependencies :: distributary#jars;working@vm\n"
        "\tfound io.delta#delta-storage;4.4.0 in maven\n"
        "\t\tmodule not found: io.delta#nonsense;4.4.0\n"
        "\t\t:: io.delta#nonsense;4.4.0: not found\n"
        "\t\t:: org.x#ranged_2.13;[4.0.0,4.2.0]: not found\n"
        "\t\t:: org.y#broken;1.0!broken.jar\n"
        "\t\t:: org.y#broken;1.0!broken.jar(bundle)\n"
    )
    assert error.code == "jars-unresolved"
    assert error.message == (
        "3 artifacts could not be had: io.delta:nonsense:4.4.0, org.x:ranged_2.13:[4.0.0,4.2.0], org.y:broken:1.0"
    )
    assert "DISTRIBUTARY_JARS" in error.fix


def test_a_repository_that_does_not_answer_is_named_without_its_password() -> None:
    error = unresolved(
        "\t\t:: io.delta#delta-storage;4.4.0: not found\n:::: ERRORS\n"
        "\tServer access error at url https://me:secret@mirror.example/maven2/io/x.pom "
        "(java.net.ConnectException: Connection refused)\n"
    )
    assert error.message == (
        "1 artifact could not be had: io.delta:delta-storage:4.4.0; "
        "mirror.example did not answer: java.net.ConnectException: Connection refused"
    )


def test_a_failure_that_names_no_artifact_quotes_the_end_of_what_ivy_said() -> None:
    error = unresolved("first\n" + "line\n" * 40 + "java.lang.OutOfMemoryError\n")
    assert error.message.endswith("java.lang.OutOfMemoryError")
    assert "first" not in error.message


def test_a_file_that_somebody_replaced_is_refused(runs: Callable[[], int], tmp_path: Path) -> None:
    genuine = replace(SMALL, hashes=HASHES)
    genuine.fill(tmp_path / "a")
    assert genuine.is_in(tmp_path / "a")
    for name, other in (("one-1.0.jar", "0" * 64), ("one-1.0.jar", None)):
        hashes = {**HASHES, name: other} if other else {key: value for key, value in HASHES.items() if key != name}
        with pytest.raises(SetupError, match=r"jar-altered.*one-1\.0\.jar"):
            replace(SMALL, hashes=hashes).fill(tmp_path / "b")
        assert not list((tmp_path / "b").glob("*.jar"))
    assert runs() == 3


def test_a_file_that_is_replaced_after_it_was_fetched_is_fetched_again(runs: Callable[[], int], tmp_path: Path) -> None:
    genuine = replace(SMALL, hashes=HASHES)
    genuine.fill(tmp_path)
    (tmp_path / "one-1.0.jar").write_text("xyz")  # of the same size
    assert not genuine.is_in(tmp_path)
    genuine.fill(tmp_path)
    assert (tmp_path / "one-1.0.jar").read_text() == "abc"
    assert runs() == 2


def test_files_that_were_put_there_by_hand_are_checked_too(tmp_path: Path) -> None:
    for name, text in (("one-1.0.jar", "abc"), ("two_2.13-2.5.jar", ""), ("three-0.1.jar", "abcdefg")):
        (tmp_path / name).write_text(text)
    genuine = replace(SMALL, hashes=HASHES)
    assert genuine.is_in(tmp_path)
    (tmp_path / "three-0.1.jar").write_text("ABCDEFG")
    assert not genuine.is_in(tmp_path)


def test_the_hashes_are_those_of_the_declared_jars() -> None:
    bundle = declared()
    assert sorted(artifact_name(Path(name)) for name in bundle.hashes) == sorted(bundle.parts)
    assert f"delta-storage-{version('delta-spark')}.jar" in bundle.hashes
    assert all(len(digest) == 64 for digest in bundle.hashes.values())
    assert declared("4.1.0", "4.1.0").hashes == {}  # of other versions nobody knows them


def test_the_demos_kafka_is_held_by_its_hashes_too() -> None:
    named = {artifact_name(Path(name)) for name in broker.JARS.hashes}
    assert set(broker.JARS.parts) <= named
    assert f"kafka_2.13-{broker.KAFKA}.jar" in broker.JARS.hashes
    assert all(len(digest) == 64 for digest in broker.JARS.hashes.values())


def test_a_lock_has_what_comes_whatever_it_is(runs: Callable[[], int]) -> None:
    genuine = replace(SMALL, hashes=dict.fromkeys(HASHES, "0" * 64))
    lines = sorted((name, digest) for name, digest in HASHES.items())
    assert genuine.lock() == "".join(f"{digest}  {name}\n" for name, digest in lines)
    assert runs() == 1


def test_a_directory_is_filled_once(runs: Callable[[], int], tmp_path: Path) -> None:
    target = tmp_path / "a/b"
    SMALL.fill(target)
    assert {name: (target / name).stat().st_size for name in names(target)} == FILES
    SMALL.fill(target)
    assert runs() == 1


@pytest.mark.usefixtures("no_java")
def test_a_filled_directory_needs_no_java(tmp_path: Path) -> None:
    for name, size in FILES.items():
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / MANIFEST).write_text(json.dumps({"key": SMALL.key, "files": FILES}))
    SMALL.fill(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda place: (place / "one-1.0.jar").unlink(),
        lambda place: (place / "three-0.1.jar").write_bytes(b"abc"),
        lambda place: (place / MANIFEST).write_text('{"key": "small-00000000", "files": {}}'),
        lambda place: (place / MANIFEST).write_text(json.dumps({"key": "other", "files": FILES})),
    ],
    ids=["a file is missing", "a file is cut off", "another list's", "another list's, same files"],
)
def test_a_half_filled_directory_is_noticed_and_filled(
    runs: Callable[[], int], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    target = tmp_path / "target"
    SMALL.fill(target)
    damage(target)
    assert not SMALL.is_in(target)
    SMALL.fill(target)
    assert SMALL.is_in(target)
    assert {name: (target / name).stat().st_size for name in names(target)} == FILES
    assert runs() == 2


def test_several_starts_at_once_fill_a_directory_once(runs: Callable[[], int], tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: SMALL.fill(tmp_path / "target"), range(4)))
    assert names(tmp_path / "target") == set(FILES)
    assert runs() == 1


def test_other_versions_go_and_what_others_put_there_stays(runs: Callable[[], int], tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    for name in ("one-0.9.jar", "one-extra-1.0.jar", "hadoop-aws-3.5.0.jar", "gone-1.jar"):
        (target / name).touch()
    (target / MANIFEST).write_text(json.dumps({"key": "old", "files": {"gone-1.jar": 0}}))
    SMALL.fill(target)
    assert runs() == 1
    assert names(target) == {*FILES, "one-extra-1.0.jar", "hadoop-aws-3.5.0.jar"}


def test_a_failed_run_leaves_the_directory_as_it_was(
    runs: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "one-0.9.jar").touch()
    monkeypatch.setenv("FAILURE", "\t\t:: org.one#one;1.0: not found")
    with pytest.raises(SetupError, match=r"org\.one:one:1\.0"):
        SMALL.fill(target)
    assert runs() == 1
    assert names(target) == {"one-0.9.jar"}
    assert not list(target.glob(".resolving-*"))


@pytest.mark.usefixtures("runs")
def test_a_part_that_no_description_led_to_is_named(tmp_path: Path) -> None:
    bundle = Bundle("small", SMALL.artifacts, parts=(*SMALL.parts, "four"))
    with pytest.raises(SetupError, match="four") as caught:
        bundle.fill(tmp_path / "target")
    assert caught.value.code == "jars-unresolved"
    assert not bundle.is_in(tmp_path / "target")


@pytest.mark.parametrize(
    ("files", "whole"),
    [
        (["one-1.0.jar", "two_2.13-2.5.jar", "three-9.0.jar"], True),
        (["one-1.1.jar", "two_2.13-2.5.jar", "three-9.0.jar"], False),
        (["one-1.0.jar", "two_2.13-2.5.jar", "two_2.13-2.6.jar", "three-9.0.jar"], False),
        (["one-1.0.jar", "two_2.13-2.5.jar"], False),
    ],
    ids=["every part", "another version", "two versions", "a part is missing"],
)
def test_a_directory_filled_by_hand(tmp_path: Path, files: list[str], whole: bool) -> None:
    for name in files:
        (tmp_path / name).touch()
    assert SMALL.is_in(tmp_path) is whole


@pytest.mark.usefixtures("runs")
def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="file/target") as caught:
        SMALL.fill(tmp_path / "file/target")
    assert caught.value.code == "jars-directory"


@pytest.mark.usefixtures("no_java")
def test_jars_of_the_named_directory_with_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "read_hashes", lambda *_: {})  # of empty files it is not
    bundle = jars.declared()
    fixed = {a.name: a.revision for a in bundle.artifacts if not a.revision.startswith("[")}
    for part in bundle.parts:
        (tmp_path / f"{part}-{fixed.get(part, '1.0')}.jar").touch()
    (tmp_path / "hadoop-aws-3.5.0.jar").touch()
    (tmp_path / "README").touch()
    monkeypatch.setenv("DISTRIBUTARY_JARS", str(tmp_path))
    found = jars.jars()
    assert found == sorted(tmp_path.glob("*.jar"))
    assert len(found) == len(bundle.parts) + 1


@pytest.mark.usefixtures("no_java")
def test_without_java_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTRIBUTARY_JARS", str(tmp_path / "jars"))
    with pytest.raises(SetupError) as caught:
        jars.jars()
    assert caught.value.code == "java-missing"
    assert "openjdk-17" in caught.value.fix


def test_the_cache_is_where_the_desktop_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "distributary"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache/distributary"


def test_list_prints_the_declared_artifacts_and_fetches_nothing(runs: Callable[[], int]) -> None:
    result = CliRunner().invoke(jars.main, ["--list"])
    assert result.output.splitlines() == [str(artifact) for artifact in jars.declared().artifacts]
    assert runs() == 0


def test_into_reports_what_failed_and_exits_as_set_up_errors_do(
    runs: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILURE", "\t\t:: io.delta#delta-spark_4.2_2.13;4.4.0: not found")
    result = CliRunner().invoke(jars.main, ["--into", str(tmp_path / "jars")])
    assert result.exit_code == 2
    assert "[jars-unresolved]" in result.output
    assert "io.delta:delta-spark_4.2_2.13:4.4.0" in result.output
    assert runs() == 1


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that has what is declared already, by its names."""
    monkeypatch.setattr(jars, "read_hashes", lambda *_: {})
    bundle = jars.declared()
    fixed = {a.name: a.revision for a in bundle.artifacts if not a.revision.startswith("[")}
    (tmp_path / "jars").mkdir()
    for part in bundle.parts:
        (tmp_path / "jars" / f"{part}-{fixed.get(part, '1.0')}.jar").touch()
    return tmp_path / "jars"


def test_a_connector_is_put_beside_the_jars_in_place_of_another_version(runs: Callable[[], int], filled: Path) -> None:
    before = names(filled)
    (filled / "one-0.9.jar").touch()
    result = CliRunner().invoke(jars.main, ["--into", str(filled), "--with", "org.one:one:1.0"])
    assert result.exit_code == 0, result.output
    assert runs() == 1
    assert names(filled) == before | set(FILES)


def test_a_connector_is_named_by_group_name_and_version(runs: Callable[[], int], filled: Path) -> None:
    result = CliRunner().invoke(jars.main, ["--into", str(filled), "--with", "hadoop-aws"])
    assert result.exit_code == 2
    assert "GROUP:NAME:VERSION" in result.output
    assert runs() == 0


def test_the_ivy_that_pyspark_ships_is_there() -> None:
    assert list(ivy.pyspark_jars().glob("ivy-*.jar"))


@pytest.mark.parametrize(
    ("file", "artifact"),
    [
        ("spark-sql-kafka-0-10_2.13-4.2.0.jar", "spark-sql-kafka-0-10_2.13"),
        ("spark-token-provider-kafka-0-10_2.13-4.1.0-preview1.jar", "spark-token-provider-kafka-0-10_2.13"),
        ("log4j-1.2-api-2.25.4.jar", "log4j-1.2-api"),
        ("netty-transport-native-epoll-4.2.1.Final-linux-x86_64.jar", "netty-transport-native-epoll"),
        ("mine.jar", "mine.jar"),
    ],
)
def test_the_artifact_that_a_file_name_stands_for(file: str, artifact: str) -> None:
    assert artifact_name(Path("somewhere", file)) == artifact


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "25-ea" 2025-09-16', 25),
        ("no Java at all", None),
    ],
)
def test_the_version_is_read_from_javas_output(printed: str, major: int | None) -> None:
    assert major_version(printed) == major


def test_a_java_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "old/java", "#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(SetupError, match="Java 11") as caught:
        java()
    assert caught.value.code == "java-too-old"


def test_java_home_comes_before_path(runs: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert java() == str(tmp_path / "jdk/bin/java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(SetupError, match="nowhere/bin/java"):
        java()
    assert runs() == 0
