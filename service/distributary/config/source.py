"""The connector that writes the topics, and how its records are read."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from distributary.config import secrets
from distributary.config.limits import Limits
from distributary.config.problem import Problem, refuse
from distributary.config.properties import ConnectorProperties, revealed
from distributary.config.scalars import Section, Text, without_credentials
from distributary.decode.order_fields import Order, parse_order

Connector = Literal[
    "sqlserver",
    "db2",
    "postgresql",
    "mysql",
    "mariadb",
    "oracle",
    "informix",
    "cockroachdb",
    "yashandb",
    "ibmi",
    "mongodb",
]

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]+")


def _registry_url(url: str) -> str:
    fix = "write basic.auth.user.info: ${env:NAME} beside it, as user:password"
    return without_credentials(url, ("http://", "https://", "mock://"), fix)


def secret_from_outside(value: Any) -> Any:
    """A secret; refused if the config file itself contains it."""
    if isinstance(value, str) and secrets.is_inline("password", value):
        raise Problem("inline-secret", "the config file must not contain a secret", secrets.FIX).error()
    return str(value) if isinstance(value, str) else value


def _topic_part(text: str) -> str:
    if not _TOPIC_NAME.fullmatch(text):
        fix = "topics have letters, digits, `.`, `_` and `-`; take the topic's spelling"
        raise Problem("bad-value", "holds a character that no topic has", fix).error()
    return text


TopicPart = Annotated[Text, AfterValidator(_topic_part)]


def _order(fields: tuple[str, ...]) -> tuple[str, ...]:
    try:
        parse_order(fields)
    except ValueError as error:
        raise Problem(
            "bad-value", str(error), "write [FIELD, FIELD TYPE, …], as in [commit_ts, op_no]"
        ).error() from error
    return fields


class SchemaRegistry(Section):
    """The schema registry, under the property names of its client."""

    url: Annotated[Text, AfterValidator(_registry_url)] = Field(
        description="The registry's URL; several are separated by commas.",
    )
    basic_auth_user_info: SecretStr | None = Field(
        None, alias="basic.auth.user.info", description="user:password, as ${env:NAME} or ${file:PATH}."
    )
    bearer_auth_token: SecretStr | None = Field(
        None, alias="bearer.auth.token", description="A token, as ${env:NAME} or ${file:PATH}."
    )
    bearer_auth_logical_cluster: Text | None = Field(
        None,
        alias="bearer.auth.logical.cluster",
        description="The registry's cluster id, in Confluent's cloud.",
    )
    bearer_auth_identity_pool_id: Text | None = Field(
        None, alias="bearer.auth.identity.pool.id", description="The identity pool of the token, in Confluent's cloud."
    )
    ssl_ca_location: Text | None = Field(
        None, alias="ssl.ca.location", description="A PEM file with the trusted certificates."
    )
    ssl_certificate_location: Text | None = Field(
        None, alias="ssl.certificate.location", description="A PEM file with the client's certificate."
    )
    ssl_key_location: Text | None = Field(
        None, alias="ssl.key.location", description="A PEM file with the client's private key."
    )
    ssl_key_password: SecretStr | None = Field(
        None, alias="ssl.key.password", description="The private key's password, as ${env:NAME} or ${file:PATH}."
    )

    apicurio_use_id: Literal["contentId"] | None = Field(
        None,
        alias="apicurio.registry.use-id",
        description="contentId: ids of eight bytes before a key or value are Apicurio's content ids. Without this "
        "setting such records can't be read, because Apicurio's global ids look the same and Confluent's "
        "API does not know them.",
    )

    _no_inline_secrets = field_validator(
        "basic_auth_user_info", "bearer_auth_token", "ssl_key_password", mode="before"
    )(secret_from_outside)

    def properties(self) -> dict[str, str]:
        """The properties of the registry's client, under its own names, secrets readable. Not for logs."""
        names = {name: field.alias or name for name, field in type(self).model_fields.items()}
        given = {alias: getattr(self, name) for name, alias in names.items() if name != "apicurio_use_id"}
        out = revealed({name: value for name, value in given.items() if value is not None})
        if "bearer.auth.token" in out:
            out["bearer.auth.credentials.source"] = "STATIC_TOKEN"
            # The client requires a value, although only Confluent's cloud uses it.
            out.setdefault("bearer.auth.logical.cluster", "")
        return out


class Source(Section):
    """The Debezium connector whose topics are read."""

    topic_prefix: TopicPart = Field(
        description="The connector's topic.prefix. Topics are called <prefix>.<schema>.<table>."
    )
    connector: Connector | None = Field(
        None, description="The kind of connector. Default: the one that the records name."
    )
    format: Literal["json", "avro"] = Field(
        "json",
        description="The records' format. JSON may have the Connect schema or not, and an envelope or not: the "
        "service detects it.",
    )
    schema_registry: SchemaRegistry | None = Field(None, description="The schema registry; required for avro.")
    order: Annotated[tuple[Text, ...], AfterValidator(_order)] = Field(
        (),
        description="For a connector that is not in the list above: the fields of the source block that order its "
        "changes, the transaction's commit first, then the change within it. A type may follow the name: "
        "number (the default), decimal, or text (all values of one length).",
    )
    signal_table: TopicPart | None = Field(
        None, description="<schema>.<table> of Debezium's signal table, so that it does not become a table of the lake."
    )
    connector_properties: ConnectorProperties = Field(
        default_factory=dict,
        description="The connector's settings that affect how records are read, under their own names, if they are "
        "not Debezium's defaults: decimal.handling.mode, unavailable.value.placeholder, …",
    )
    limits: Limits = Field(default_factory=Limits, description="What one record may ask for, before it is refused.")

    @property
    def order_fields(self) -> Order:
        """`order`, parsed."""
        return parse_order(self.order)

    @property
    def has_long_ids(self) -> bool:
        """Whether schemas' ids of eight bytes can be read."""
        return self.schema_registry is not None and self.schema_registry.apicurio_use_id is not None

    @model_validator(mode="after")
    def _order_is_for_others(self) -> Source:
        if self.order and self.connector is not None:
            fix = "take order out; or take connector out where another one writes the topics"
            refuse([Problem("order-not-needed", f"the order of {self.connector} is known", fix, ("order",))])
        return self

    @model_validator(mode="after")
    def _avro_needs_a_registry(self) -> Source:
        if self.format == "avro" and self.schema_registry is None:
            fix = "add source.schema_registry: {url: http://HOST:PORT}"
            refuse([Problem("missing-key", "format: avro needs schema_registry", fix, ("schema_registry",))])
        return self
