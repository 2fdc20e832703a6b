"""A secret is readable for its owner and for nobody else."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from distributary.config import Config, load
from distributary.config.secrets import is_secret
from distributary.errors import ConfigError

SECRET = "correct-horse-battery-staple"

RIGHT = """\
version: 1
kafka:
  bootstrap.servers: localhost:9092
  sasl.password: ${env:SECRET}
  ssl.key.password: ${file:secret.txt}
  some.property.of.another.name: before ${env:SECRET} after
  sasl.jaas.config: 'ScramLoginModule required username="a" password="${env:SECRET}";'
source:
  topic_prefix: server1
  schema_registry:
    url: http://localhost:8081
    basic.auth.user.info: user:${file:secret.txt}
    bearer.auth.token: ${env:SECRET}
target: {path: /data/lake}
checkpoint: /data/checkpoints
spark:
  spark.hadoop.fs.s3a.secret.key: ${env:SECRET}
tables: [{match: "*.*"}]
"""

# The secret goes where nothing of the kind is expected, so that every kind of fault meets it.
WRONG = """\
version: ${env:SECRET}
kafka:
  bootstrap.servers: ${env:SECRET}
  group.id: ${env:SECRET}
  kafka.a: ${env:SECRET}
  sasl.jaas.config: JndiLoginModule ${env:SECRET}
source:
  topic_prefix: ${env:SECRET} with a space
  connector: ${env:SECRET}
  schema_registry: {url: "${env:SECRET}", no.such.key: "${env:SECRET}"}
target: {path: "s3a://a:${env:SECRET}@lake", table: "${env:SECRET}"}
checkpoint: ["${env:SECRET}"]
spark: {fs.a: "${env:SECRET}"}
defaults: {columns: {a: "${env:SECRET}"}, mode: "${env:SECRET}", epoch: "${env:SECRET}"}
tables: [{match: "${env:SECRET}"}, {match: "${env:SECRET}"}, "${env:SECRET}"]
include: ["${env:SECRET}", "${env:SECRET}/**x/*"]
trigger: {interval: "${env:SECRET}", max_records: "${env:SECRET}"}
http: {enabled: "${env:SECRET}", port: "${env:SECRET}"}
quarantine: {max_ratio: "${env:SECRET}"}
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SECRET", SECRET)
    (tmp_path / "secret.txt").write_text(SECRET + "\n")
    return tmp_path


@pytest.fixture
def config(directory: Path) -> Config:
    path = directory / "config.yaml"
    path.write_text(RIGHT)
    return load(path)


def test_their_owners_can_read_them(config: Config) -> None:
    kafka = config.kafka_properties()
    assert kafka["sasl.password"] == SECRET
    assert kafka["ssl.key.password"] == SECRET
    assert kafka["some.property.of.another.name"] == f"before {SECRET} after"
    assert kafka["sasl.jaas.config"] == f'ScramLoginModule required username="a" password="{SECRET}";'
    assert config.spark_properties() == {"spark.hadoop.fs.s3a.secret.key": SECRET}
    assert config.source.schema_registry is not None
    assert config.source.schema_registry.properties() == {
        "url": "http://localhost:8081",
        "basic.auth.user.info": f"user:{SECRET}",
        "bearer.auth.token": SECRET,
        "bearer.auth.credentials.source": "STATIC_TOKEN",
        "bearer.auth.logical.cluster": "",
    }


def test_nothing_that_is_printed_shows_them(config: Config) -> None:
    shown = [repr(config), str(config), config.model_dump_json(), repr(config.model_dump()), f"{config.kafka}"]
    assert not any(SECRET in text for text in shown)
    assert "localhost:9092" in shown[0]


def test_no_fault_shows_them(directory: Path) -> None:
    path = directory / "config.yaml"
    path.write_text(WRONG)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert len(caught.value.faults) >= 20
    assert SECRET not in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in repr(caught.value.faults)


def test_errors_of_a_config_made_in_python_do_not_show_them() -> None:
    with pytest.raises(ValidationError) as caught:
        Config.model_validate({"version": 1, "kafka": {"sasl.password": SECRET}, "http": {"port": SECRET}})
    assert SECRET not in str(caught.value)


def test_a_config_made_in_python_gives_secrets_as_such() -> None:
    config = Config.model_validate(
        {
            "version": 1,
            "kafka": {"bootstrap.servers": "a:1", "sasl.username": "me", "sasl.password": SecretStr(SECRET)},
            "source": {"topic_prefix": "p"},
            "target": {"path": "/lake"},
            "checkpoint": "/checkpoints",
            "tables": [{"match": "*.*"}],
        }
    )
    assert config.kafka_properties()["sasl.password"] == SECRET
    assert SECRET not in repr(config)


@pytest.mark.parametrize(
    "name",
    [
        *("sasl.password", "SASL.PASSWORD", "ssl.keystore.key", "sasl.jaas.config", "sasl.oauthbearer.client.secret"),
        *("basic.auth.user.info", "spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.bucket.b.secret.key"),
        *("spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net", "spark.authenticate.secret"),
        *("spark.hadoop.fs.azure.account.oauth2.client.secret.acc.dfs.core.windows.net", "spark.ssl.keyPassword"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("bootstrap.servers", "sasl.mechanism", "sasl.username", "sasl.oauthbearer.token.endpoint.url"),
        *("ssl.key.location", "ssl.keystore.location", "ssl.keystore.type", "ssl.truststore.certificates"),
        *("spark.hadoop.fs.s3a.aws.credentials.provider", "spark.security.credentials.kafka.enabled"),
        *("spark.sql.shuffle.partitions", "spark.hadoop.fs.s3a.endpoint", "sasl.login.refresh.buffer.seconds"),
    ],
)
def test_names_of_others(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(("token", "code"), [("", "bad-value"), ("short", "bad-value"), (SECRET, None)])
def test_the_token_of_the_pages_can_not_be_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str, code: str | None
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    monkeypatch.setenv("TOKEN", token)
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "config.yaml").write_text(f"{RIGHT}http: {{token: '${{env:TOKEN}}'}}\n")
    if code is None:
        assert SECRET not in repr(load(tmp_path / "config.yaml").http)
        return
    with pytest.raises(ConfigError, match=rf"\[{code}\] http\.token"):
        load(tmp_path / "config.yaml")
