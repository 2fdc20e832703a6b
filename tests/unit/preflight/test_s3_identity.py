"""As whom Spark and the commands without it reach S3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.manifests import CHART
from tests.support.table_contexts import config

from distributary.config import load
from distributary.preflight import doctor
from distributary.preflight.check_result import CheckPassed, CheckWarning
from distributary.preflight.s3_identity import identities_agree, uses_s3

S3A = "spark.hadoop.fs.s3a"
PROVIDER = f"{S3A}.aws.credentials.provider"
WEB = "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"
ROLE = "arn:aws:iam::111122223333:role/lake-writer"
IRSA = {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/secrets/token"}
POD = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials"}
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAONE", "AWS_SECRET_ACCESS_KEY": "hunter2hunter2"}
KEYS_OF_SPARK = {f"{S3A}.access.key": "AKIATWO", f"{S3A}.secret.key": "another-secret"}


@pytest.fixture(autouse=True)
def no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*IRSA, *POD, *KEYS, "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        monkeypatch.delenv(name, raising=False)


Found = Callable[..., CheckPassed | CheckWarning]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Found:
    """The check's result with this environment and these properties, whose keys are read from files."""

    def look(
        environment: dict[str, str], spark: dict[str, str] | None = None, checkpoint: str = "s3a://lake/checkpoints"
    ) -> CheckPassed | CheckWarning:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        properties = dict(spark or {})
        for name in {f"{S3A}.access.key", f"{S3A}.secret.key"} & set(properties):
            (tmp_path / name).write_text(properties[name])
            properties[name] = f"${{file:{tmp_path / name}}}"
        text = {
            "version": 1,
            "kafka": {"bootstrap.servers": "localhost:9092"},
            "source": {"topic_prefix": "server1"},
            "target": {"path": "s3a://lake/cdc"},
            "checkpoint": checkpoint,
            "spark": properties,
            "tables": [{"match": "*.*"}],
        }
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(text))
        return identities_agree(load(tmp_path / "config.yaml"))

    return look


@pytest.mark.parametrize(
    ("environment", "spark", "shown"),
    [
        ({}, {}, "the machine's role"),
        (POD, {}, "pod identity"),
        (IRSA, {PROVIDER: WEB}, f"web identity as {ROLE}"),
        (IRSA, {f"{S3A}.bucket.lake.aws.credentials.provider": WEB}, f"web identity as {ROLE}"),
        # Spark itself takes them from the environment.
        (KEYS, {}, "static keys"),
        (KEYS, {f"{S3A}.access.key": "AKIAONE", f"{S3A}.secret.key": "hunter2hunter2"}, "static keys"),
        ({"AWS_PROFILE": "lake"}, {PROVIDER: "org.apache.hadoop.fs.s3a.auth.ProfileAWSCredentialsProvider"}, "lake"),
        (IRSA, {PROVIDER: "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"}, "web identity"),
        (POD, {PROVIDER: f"{WEB}, org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider"}, "pod identity"),
    ],
)
def test_one_identity_is_reported(found: Found, environment: dict[str, str], spark: dict[str, str], shown: str) -> None:
    one = found(environment, spark)
    assert isinstance(one, CheckPassed), one
    assert one.message.startswith("s3://lake: Spark and the commands without it use ")
    assert shown in one.message


@pytest.mark.parametrize(
    ("environment", "spark", "result"),
    [
        # The trap: by its own defaults Spark becomes the machine.
        (IRSA, {}, ("Spark uses the machine's role", f"use web identity as {ROLE}")),
        ({}, KEYS_OF_SPARK, ("Spark uses static keys", "use the machine's role")),
        (KEYS, KEYS_OF_SPARK, ("Spark uses static keys", "use other static keys")),
        (KEYS | IRSA, {PROVIDER: WEB}, (f"Spark uses web identity as {ROLE}", "use static keys")),
        ({}, {PROVIDER: WEB}, ("Spark uses nobody", "use the machine's role")),
    ],
)
def test_two_identities_are_reported(
    found: Found, environment: dict[str, str], spark: dict[str, str], result: tuple[str, str]
) -> None:
    two = found(environment, spark)
    assert isinstance(two, CheckWarning)
    assert two.code == "identities-differ"
    assert all(text in two.message for text in result), two.message


def test_a_role_that_spark_passes_over_has_its_way_out(found: Found) -> None:
    two = found(IRSA)
    assert isinstance(two, CheckWarning)
    assert f"{PROVIDER}: {WEB}" in two.fix


@pytest.mark.parametrize(
    "spark",
    [{PROVIDER: "com.example.Vault"}, {"spark.hadoop.hadoop.security.credential.provider.path": "jceks://x"}],
)
def test_what_nobody_knows_is_not_guessed(found: Found, spark: dict[str, str]) -> None:
    unknown = found(KEYS, spark)
    assert isinstance(unknown, CheckWarning)
    assert unknown.code == "identity-unknown"


def test_no_key_is_shown(found: Found) -> None:
    for spark in ({}, KEYS_OF_SPARK):
        shown = repr(found(KEYS, spark))
        assert not any(secret in shown for secret in ("AKIA", "hunter2", "another"))


def test_each_bucket_is_checked(found: Found) -> None:
    own = {f"{S3A}.bucket.other.aws.credentials.provider": WEB}
    two = found(POD, own, checkpoint="s3a://other/checkpoints")
    assert isinstance(two, CheckWarning)
    assert two.message.startswith("s3://other: ")


def test_doctor_asks_where_something_is_in_s3_and_not_elsewhere() -> None:
    here, there = config(), config(target={"path": "s3a://lake/cdc"})
    assert (uses_s3(here), uses_s3(there)) == (False, True)
    names = [[check.name for check in doctor.checks_of(one)] for one in (here, there)]
    assert ["identity" in one for one in names] == [False, True]
    assert names[1].index("identity") < names[1].index("target")


def values_of(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(path.read_text())
    return values


@pytest.mark.parametrize(
    ("name", "environment"), [("s3", KEYS), ("s3-web-identity", IRSA)], ids=["s3", "s3-web-identity"]
)
def test_the_charts_examples_have_one_identity(found: Found, name: str, environment: dict[str, str]) -> None:
    """What the cluster adds to the pod: keys of the Secret, or what EKS sets for the service account's role."""
    values = values_of(CHART / f"examples/{name}.yaml")
    files = {"access-key": KEYS["AWS_ACCESS_KEY_ID"], "secret-key": KEYS["AWS_SECRET_ACCESS_KEY"]}
    spark = {
        key: files[value.rpartition("/")[2].rstrip("}")] if value.startswith("${file:") else value
        for key, value in values["config"]["spark"].items()
    }
    assert isinstance(found(environment, spark), CheckPassed)
    set_by_chart = {one["name"] for one in values.get("env", [])}
    assert ("AWS_ACCESS_KEY_ID" in set_by_chart) is (name == "s3")
    annotations = values.get("serviceAccount", {}).get("annotations", {})
    assert ("eks.amazonaws.com/role-arn" in annotations) is (name == "s3-web-identity")
