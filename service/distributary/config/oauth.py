"""Kafka's login by OAuth: each client gets tokens from an identity provider, by its name there and its secret (SASL
OAUTHBEARER with OIDC's client credentials), and gets the next one before a token ends.

Both of the service's clients do that by themselves, and call the same things otherwise: Spark's Java client wants them
in a JAAS line, librdkafka as properties. Users write Kafka's names (KIP-1139), or the JAAS line that they have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from distributary.errors import UsageError

MECHANISM = "OAUTHBEARER"
_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
OWN_HANDLERS = tuple(
    f"org.apache.kafka.common.security.oauthbearer.{package}OAuthBearerLoginCallbackHandler"
    for package in ("", "secured.")
)
"""The values of `sasl.login.callback.handler.class` that the Java client gets in any case, now and before Kafka 3.4."""
_ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"

_URL = "sasl.oauthbearer.token.endpoint.url"
_ID = "sasl.oauthbearer.client.credentials.client.id"
_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
_SCOPE = "sasl.oauthbearer.scope"
_EXTENSIONS = "sasl.oauthbearer.extensions"
_AUTHORITY = "https.ca.location"
PROPERTIES = (_URL, _ID, _SECRET, _SCOPE, _EXTENSIONS, _AUTHORITY)
"""The config's properties that this module handles; others that begin with `sasl.oauthbearer.` are passed on."""

_OPTION = re.compile(r"""([\w.]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""")
_OF_A_JAAS_LINE = {"clientId": _ID, "clientSecret": _SECRET, "scope": _SCOPE}
_EXTENSION = "extension_"


@dataclass(frozen=True)
class OAuth:
    """A login by OAuth. `extensions` are values that some brokers need beside the token (Confluent's `logicalCluster`);
    `authority` is a PEM file with the authority of the identity provider's certificate, None for the system's
    authorities."""

    url: str
    client_id: str
    client_secret: str
    scope: str | None
    extensions: Mapping[str, str]
    authority: str | None

    def java(self) -> dict[str, str]:
        """The properties of Kafka's Java client."""
        options = {"clientId": self.client_id, "clientSecret": self.client_secret}
        if self.scope is not None:
            options["scope"] = self.scope
        options.update({f"{_EXTENSION}{name}": value for name, value in self.extensions.items()})
        if self.authority is not None:
            options.update({"ssl.truststore.type": "PEM", "ssl.truststore.location": self.authority})
        written = " ".join(f'{name}="{escaped(value)}"' for name, value in options.items())
        return {
            _URL: self.url,
            "sasl.login.callback.handler.class": OWN_HANDLERS[0],
            "sasl.jaas.config": f"{_MODULE} required {written};",
        }

    def librdkafka(self) -> dict[str, str]:
        """The properties of librdkafka."""
        settings = {
            _URL: self.url,
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": self.client_id,
            "sasl.oauthbearer.client.secret": self.client_secret,
            _SCOPE: self.scope,
            _EXTENSIONS: ",".join(f"{name}={_kept(value)}" for name, value in self.extensions.items()),
            _AUTHORITY: self.authority,
        }
        return {name: value for name, value in settings.items() if value}

    def system_properties(self) -> dict[str, str]:
        """The system properties that a JVM needs before its Kafka client asks for a token: without them no URL is
        allowed."""
        return {_ALLOWED: self.url}


def oauth(properties: Mapping[str, str]) -> OAuth | None:
    """The OAuth login in the config's Kafka properties; None if they use another login. Raises UsageError, whose text
    holds no value."""
    mechanism = properties.get("sasl.mechanism")
    if mechanism != MECHANISM:
        if any(name in properties for name in PROPERTIES):
            raise UsageError(
                "kafka-oauth", "a login by OAuth without its mechanism", f"add sasl.mechanism: {MECHANISM}"
            )
        return None
    settings = {name: properties[name] for name in PROPERTIES if name in properties}
    extensions = _pairs(settings.get(_EXTENSIONS, ""))
    if jaas := properties.get("sasl.jaas.config"):
        options = _options(jaas)
        settings.update({_OF_A_JAAS_LINE[name]: value for name, value in options.items() if name in _OF_A_JAAS_LINE})
        extensions.update(
            {name.removeprefix(_EXTENSION): value for name, value in options.items() if name.startswith(_EXTENSION)}
        )
    if missing := [name for name in (_URL, _ID, _SECRET) if not settings.get(name)]:
        raise UsageError("kafka-oauth", f"a login by OAuth needs {', '.join(missing)}", "add what is missing")
    if not re.match(r"https?://\S+$", settings[_URL]):
        raise UsageError("kafka-oauth", f"{_URL} must be an http or https URL", "write https://HOST/PATH")
    return OAuth(
        settings[_URL], settings[_ID], settings[_SECRET], settings.get(_SCOPE), extensions, settings.get(_AUTHORITY)
    )


def escaped(credential: str) -> str:
    """The text as it stands between the quotes of a JAAS line."""
    return credential.replace("\\", "\\\\").replace('"', '\\"')


def options_of(jaas: str) -> dict[str, str]:
    """The options of a JAAS line, by name."""
    return {
        name: re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value
        for name, value in _OPTION.findall(jaas)
    }


def _options(jaas: str) -> dict[str, str]:
    options = options_of(jaas)
    if other := [name for name in options if name not in _OF_A_JAAS_LINE and not name.startswith(_EXTENSION)]:
        raise UsageError(
            "kafka-jaas",
            f"sasl.jaas.config has {', '.join(other)}, which the service's own Kafka client can't use",
            f"take it out. {_AUTHORITY} names a PEM file with the authority of the identity provider's certificate",
        )
    return options


def _pairs(extensions: str) -> dict[str, str]:
    """As librdkafka reads them: a comma in a value has a backslash before it (Confluent takes several pools so)."""
    pairs = {}
    for pair in filter(None, (part.strip() for part in re.split(r"(?<!\\),", extensions))):
        name, equals, value = pair.partition("=")
        if not (name.isascii() and name.isalpha() and equals and value):
            fix = "write NAME=VALUE,NAME=VALUE, a comma in a value as \\,"
            raise UsageError("kafka-oauth", f"{_EXTENSIONS} is no list of names and values", fix)
        pairs[name] = re.sub(r"\\(.)", r"\1", value)
    return pairs


def _kept(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,")
