"""The config's Kafka properties, for Spark's Java client and for librdkafka (admin calls and first looks).

Users write properties under Kafka's own (Java) names. `sasl.username` and `sasl.password` are understood too, as they
are easier to keep out of a file than a JAAS line; each client gets the form that it knows. Properties that one of them
can't use are refused with the config, and by commands that have no config yet: UsageErrors, whose texts hold no values.
"""

from __future__ import annotations

from collections.abc import Mapping

from distributary.config.oauth import MECHANISM, PROPERTIES, escaped, oauth, options_of
from distributary.errors import UsageError

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

# Properties with librdkafka's name for each, or the same name; properties that only tune the Java client are left out.
_RENAMED = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_TAKEN = (
    "bootstrap.servers", "security.protocol", "sasl.mechanism", "ssl.key.password",
    "ssl.endpoint.identification.algorithm", "client.id", "sasl.oauthbearer.sub.claim.name",
)  # fmt: skip
UNDERSTOOD = (
    *_TAKEN, *_RENAMED, *PROPERTIES, "sasl.username", "sasl.password", "sasl.jaas.config",
    "sasl.oauthbearer.scope.claim.name",
    "ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password",
    "ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password",
)  # fmt: skip
"""The properties by which the clients find and trust the brokers and log in; others only tune the Java client."""
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""The values of `security.protocol`, in upper or lower case."""


def spark_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Options of Spark's Kafka source: each property with the prefix `kafka.`, credentials as a JAAS line.

    Aborted transactions are never read. Does not check for the properties that librdkafka_options refuses.
    """
    login = oauth(properties)
    java = {name: value for name, value in properties.items() if name not in PROPERTIES}
    if login is not None:
        java.update(login.java())
    username, password = java.pop("sasl.username", None), java.pop("sasl.password", None)
    if username is not None and password is not None and "sasl.jaas.config" not in java:
        mechanism = java.setdefault("sasl.mechanism", "PLAIN")
        java["sasl.jaas.config"] = (
            f'{_LOGIN_MODULES[mechanism]} required username="{escaped(username)}" password="{escaped(password)}";'
        )
    java["isolation.level"] = "read_committed"
    return {f"kafka.{key}": value for key, value in java.items()}


def system_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The system properties that a JVM needs before its Kafka client can log in."""
    login = oauth(properties)
    return {} if login is None else login.system_properties()


def librdkafka_options(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of the same connection for confluent-kafka.

    Raises UsageError if a Java-only form (a JKS store, a login module without name and password) can't be turned,
    and for a login that this client does not know.
    """
    if properties.get("sasl.mechanism", "PLAIN") not in (*_LOGIN_MODULES, MECHANISM):
        raise UsageError(
            "kafka-sasl-mechanism",
            "the service can't log in by this sasl.mechanism: its C client knows neither Kerberos nor AWS's IAM",
            f"use one of {', '.join((*_LOGIN_MODULES, MECHANISM))}, or a client's certificate",
        )
    out = {key: properties[key] for key in _TAKEN if key in properties}
    out.update({new: properties[old] for old, new in _RENAMED.items() if old in properties})
    for key in ("sasl.username", "sasl.password"):
        if key in properties:
            out[key] = properties[key]
    if (login := oauth(properties)) is not None:
        out.update(login.librdkafka())
    elif jaas := properties.get("sasl.jaas.config"):
        options = options_of(jaas)
        credentials = {name: options[name] for name in ("username", "password") if name in options}
        if set(credentials) != {"username", "password"}:
            raise UsageError(
                "kafka-jaas",
                "sasl.jaas.config has no username and password, so the service's own Kafka client can't log in",
                "give sasl.username and sasl.password instead, or a client's certificate",
            )
        out.update({f"sasl.{key}": value for key, value in credentials.items()})
    if "sasl.username" in out:
        out.setdefault("sasl.mechanism", "PLAIN")
    out.update(_stores(properties))
    return out


def _stores(properties: Mapping[str, str]) -> dict[str, str]:
    out = {}
    if location := properties.get("ssl.truststore.location"):
        if properties.get("ssl.truststore.type", "JKS").upper() != "PEM":
            raise UsageError(
                "kafka-truststore",
                "ssl.truststore.location must be a PEM file (ssl.truststore.type: PEM)",
                "convert it: keytool -importkeystore … -deststoretype PKCS12, then openssl pkcs12 -nokeys -out ca.pem",
            )
        out["ssl.ca.location"] = location
    if location := properties.get("ssl.keystore.location"):
        kind = properties.get("ssl.keystore.type", "JKS").upper()
        if kind == "PEM":
            out["ssl.certificate.location"] = out["ssl.key.location"] = location
        elif kind == "PKCS12":
            out["ssl.keystore.location"] = location
            if password := properties.get("ssl.keystore.password"):
                out["ssl.keystore.password"] = password
        else:
            raise UsageError(
                "kafka-keystore",
                "a keystore of this ssl.keystore.type can't be read by the service's own Kafka client",
                "use PEM or PKCS12",
            )
    return out
