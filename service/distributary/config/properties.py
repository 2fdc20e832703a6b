"""Properties that are passed on to Kafka, Spark and the connector: all except harmful ones.

Refused are properties that the service sets itself (two owners of one setting means that one of them is silently
wrong), properties that load code named by the config, and secrets in plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, SecretStr, WithJsonSchema

from distributary.config import connector, secrets
from distributary.config.clients import PROTOCOLS, UNDERSTOOD, librdkafka_options
from distributary.config.interpolate import Interpolated
from distributary.config.oauth import OWN_HANDLERS
from distributary.config.problem import Problem, refuse
from distributary.errors import UsageError

KAFKA_OWNED = {
    "group.id": "the service keeps its own offsets; `consumer_group.name` is the group that lag tools see",
    "group.instance.id": "the service keeps its own offsets and is no member of a group",
    "key.deserializer": "the service reads raw bytes",
    "value.deserializer": "the service reads raw bytes",
    "auto.offset.reset": "each table's own offsets decide where the service starts",
    "enable.auto.commit": "a table's offsets are kept in the table's own commits",
    "auto.commit.interval.ms": "a table's offsets are kept in the table's own commits",
    "isolation.level": "the service always reads committed records only",
}
KAFKA_CODE = {
    "interceptor.classes": "it puts other code between Kafka and the service",
    "metric.reporters": "it loads other code into the service",
    "security.providers": "it loads other code into the service",
    "ssl.engine.factory.class": "it loads other code into the service",
    "config.providers": "it loads other code into the service; this config has ${env:NAME} and ${file:PATH}",
    "sasl.login.class": "it loads other code into the service",
    "sasl.client.callback.handler.class": "it loads other code into the service",
    "sasl.login.callback.handler.class": "it loads other code into the service",
    "sasl.server.callback.handler.class": "it loads other code into the service",
}
# Login modules that look up what a config names in JNDI or LDAP have let attackers run code (CVE-2023-25194).
_LOGIN_MODULE = re.compile(r"(jndi|ldap)loginmodule", re.IGNORECASE)

# Where a config is wrong that librdkafka can't use.
_AT = {
    "kafka-sasl-mechanism": ("sasl.mechanism",), "kafka-oauth": ("sasl.mechanism",),
    "kafka-jaas": ("sasl.jaas.config",),
    "kafka-truststore": ("ssl.truststore.location",), "kafka-keystore": ("ssl.keystore.location",),
}  # fmt: skip

_JARS = "put jars into the jar directory (DISTRIBUTARY_JARS) instead"
SPARK_OWNED = {
    "spark.jars": f"the service loads its jars from one directory; {_JARS}",
    "spark.jars.packages": f"no start of the service needs the network; {_JARS}",
    "spark.jars.repositories": f"no start of the service needs the network; {_JARS}",
    "spark.jars.ivySettings": f"no start of the service needs the network; {_JARS}",
    "spark.sql.session.timeZone": "the service runs in UTC; another time zone would shift timestamps",
    "spark.sql.extensions": "the service sets Delta's",
    "spark.sql.catalog.spark_catalog": "the service sets Delta's",
    "spark.sql.ansi.enabled": "the service sets it, so that no value is turned into NULL",
    "spark.sql.caseSensitive": "the service sets it, so that columns keep the source's names",
    "spark.sql.variable.substitute": "the service sets it, so that ${…} in a column's name stays what it is",
    "spark.sql.parquet.outputTimestampType": "the service sets it, so that every reader sees the same time",
    "spark.sql.streaming.checkpointLocation": "use `checkpoint` instead",
    "spark.databricks.delta.schema.autoMerge.enabled": "`schema_changes` decides what happens to new columns",
    "spark.databricks.delta.write.txnAppId": "with it Delta silently skips commits, and data is lost",
    "spark.databricks.delta.write.txnVersion": "with it Delta silently skips commits, and data is lost",
    "spark.databricks.delta.commitInfo.userMetadata": "the service keeps each table's offsets in it",
}
_OTHER_TIME_ZONE = re.compile(r"-Duser\.timezone=(?!UTC\b|GMT\b)", re.IGNORECASE)


def _as_text(value: Any) -> Any:
    """Numbers and booleans as text, the way YAML spells them, for configs that are made in Python."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if not isinstance(value, (str, SecretStr)):
        raise Problem("wrong-type", "must be a single value: text, a number, true or false").error()
    return value


_SCALAR_SCHEMA = {"type": ["string", "number", "boolean"]}

PropertyValue = Annotated[Any, BeforeValidator(_as_text), WithJsonSchema(_SCALAR_SCHEMA)]


def _kafka(properties: dict[str, Any]) -> dict[str, str | SecretStr]:
    problems = list(_inline(properties))
    if not _plain(properties.get("bootstrap.servers", "")).strip():
        fix = "add bootstrap.servers: HOST:PORT"
        problems.append(Problem("missing-key", "bootstrap.servers is missing", fix))
    for name, value in properties.items():
        if reason := KAFKA_OWNED.get(name.lower()):
            problems.append(_refused("kafka-owned", name, reason))
        elif (reason := KAFKA_CODE.get(name.lower())) and _plain(value) not in OWN_HANDLERS:
            problems.append(_refused("kafka-code", name, reason))
        elif name.lower().endswith("jaas.config") and _LOGIN_MODULE.search(_plain(value)):
            reason = "its login module looks up code in JNDI or LDAP"
            problems.append(_refused("kafka-code", name, reason, "use a login module of Kafka"))
        elif name.startswith("kafka."):
            fix = f"write {name.removeprefix('kafka.')}"
            problems.append(Problem("bad-property", "Kafka's own names have no `kafka.` before them", fix, (name,)))
    refuse([*problems, *_no_connection(properties)] or _not_for_librdkafka(properties))
    return _shut(properties)


_ALIKE = 0.9
"""The similarity to a known name (difflib's ratio) from which a name counts as misspelt."""


def _no_connection(properties: dict[str, Any]) -> Iterator[Problem]:
    """Problems that make every connection fail. Both Kafka clients would silently ignore a misspelt name."""
    for name in properties:
        near = get_close_matches(name.lower(), UNDERSTOOD, n=1, cutoff=_ALIKE)
        if near and name not in UNDERSTOOD:
            yield Problem("bad-property", "Kafka's clients have no property of this name", f"write {near[0]}", (name,))
    protocol = _plain(properties.get("security.protocol", "PLAINTEXT"))
    if protocol.upper() not in PROTOCOLS:
        close = get_close_matches(protocol.upper(), PROTOCOLS, n=1)
        fix = f"did you mean {close[0]}?" if close else ""
        yield Problem("bad-value", f"must be one of {', '.join(PROTOCOLS)}", fix, ("security.protocol",))
    for given, other in (("sasl.username", "sasl.password"), ("sasl.password", "sasl.username")):
        if given in properties and other not in properties and "sasl.jaas.config" not in properties:
            yield Problem(
                "missing-key", f"{other} is missing, without which {given} is no login", f"add {other}", (given,)
            )


def _not_for_librdkafka(properties: dict[str, Any]) -> list[Problem]:
    """Problems of properties that only Kafka's Java client supports."""
    try:
        librdkafka_options(revealed(properties))
    except UsageError as error:
        return [Problem(error.code, error.message, error.fix, _AT[error.code])]
    return []


def _spark(properties: dict[str, Any]) -> dict[str, str | SecretStr]:
    problems = list(_inline(properties))
    for name, value in properties.items():
        if reason := SPARK_OWNED.get(name):
            problems.append(_refused("spark-owned", name, reason))
        elif _OTHER_TIME_ZONE.search(_plain(value)):
            problems.append(_refused("spark-owned", name, "the service runs in UTC", "take -Duser.timezone out"))
        elif not name.startswith("spark."):
            fix = f"Hadoop's settings go under spark.hadoop, as in spark.hadoop.{name}"
            problems.append(Problem("bad-property", "Spark's properties start with `spark.`", fix, (name,)))
    refuse(problems)
    return _shut(properties)


def _connector(properties: dict[str, Any]) -> dict[str, str]:
    fix = "take it out: the service never connects to the source database"
    problems = [
        Problem("inline-secret", "a secret of the connector does not belong here", fix, (name,))
        for name, value in properties.items()
        if secrets.is_secret(name) or secrets.is_inline(name, value)
    ]
    plain = {name: _plain(value) for name, value in properties.items()}
    refuse([*problems, *connector.faults(plain)])
    return connector.spelled(plain)


KafkaProperties = Annotated[dict[str, PropertyValue], AfterValidator(_kafka)]
SparkProperties = Annotated[dict[str, PropertyValue], AfterValidator(_spark)]
ConnectorProperties = Annotated[dict[str, PropertyValue], AfterValidator(_connector)]


def revealed(properties: Mapping[str, str | SecretStr]) -> dict[str, str]:
    """The properties as their owner wants them, secrets readable. Not for logs."""
    return {name: _plain(value) for name, value in properties.items()}


def _inline(properties: dict[str, Any]) -> Iterator[Problem]:
    for name, value in properties.items():
        if secrets.is_inline(name, value):
            yield Problem("inline-secret", "the config file must not contain a secret", secrets.FIX, (name,))


def _refused(code: str, name: str, reason: str, fix: str = "take it out") -> Problem:
    return Problem(code, f"refused, since {reason}", fix, (name,))


def _plain(value: str | SecretStr) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def _shut(properties: dict[str, Any]) -> dict[str, str | SecretStr]:
    """Secrets, and all that came from outside of the file, as `SecretStr`: no log and no error shows it."""
    return {
        name: SecretStr(_plain(value)) if isinstance(value, Interpolated) or secrets.is_secret(name) else value
        for name, value in properties.items()
    }
