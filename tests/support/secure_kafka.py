"""A Kafka with authentication: passwords over TLS, tokens, client certificates, and ACLs per topic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives import serialization
from tests.support.identity_provider import AUDIENCE, IdentityProvider, running_identity_provider

from distributary.demo.broker import Broker
from distributary.demo.process import free_ports

USER = "distributary"
PASSWORD = 'a "long" \\ password, with $igns'
_TIMEOUT = 60.0
"""Seconds."""


@dataclass(frozen=True)
class SecureKafka:
    """`open` is an address without any check, for the tests themselves; `password` asks for USER and PASSWORD (SCRAM),
    `certificate` for a client's certificate and `token` for a token that `identity` gives to USER with PASSWORD, all
    over TLS. `authority` is the file with the authority of the servers' certificates, `client` the one with the
    client's key and certificate."""

    open: str
    password: str
    certificate: str
    token: str
    identity: IdentityProvider
    authority: Path
    client: Path

    def allow(self, *rights: AclBinding) -> None:
        """Gives USER these rights; returns once the broker knows them."""
        admin = self._admin()
        for future in admin.create_acls(list(rights), request_timeout=_TIMEOUT).values():
            future.result()

    def take_back(self, right: AclBinding) -> None:
        """Takes one right from USER."""
        wanted = AclBindingFilter(
            right.restype,
            right.name,
            right.resource_pattern_type,
            right.principal,
            right.host,
            right.operation,
            right.permission_type,
        )
        admin = self._admin()
        for future in admin.delete_acls([wanted], request_timeout=_TIMEOUT).values():
            assert len(future.result()) == 1

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.open})


def may(operation: AclOperation, resource: ResourceType, name: str, *, prefix: bool = False) -> AclBinding:
    """A right of USER."""
    pattern = ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL
    return AclBinding(resource, name, pattern, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)


def may_not(operation: AclOperation, resource: ResourceType, name: str) -> AclBinding:
    """An operation that USER is refused, whatever else is allowed."""
    pattern = ResourcePatternType.LITERAL
    return AclBinding(resource, name, pattern, f"User:{USER}", "*", operation, AclPermissionType.DENY)


@contextmanager
def running_secure_kafka(directory: Path) -> Iterator[SecureKafka]:
    """A broker from its jars, that keeps its files in `directory`. USER has no right yet."""
    directory.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA()
    trusted = directory / "ca.pem"
    authority.cert_pem.write_to_path(str(trusted))
    server, client = directory / "server.pem", directory / "client.pem"
    _write(authority.issue_cert("127.0.0.1"), server)
    _write(authority.issue_cert("client.invalid", common_name=USER), client)

    plain, password, certificate, token, controller = free_ports(5)
    ports = {"PLAINTEXT": plain, "SASL_SSL": password, "SSL": certificate, "OAUTH": token}
    addresses = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    oauth = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"
    properties = {
        "listeners": f"{addresses},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": addresses,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL,OAUTH:SASL_SSL"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        "listener.name.ssl.ssl.client.auth": "required",
        "listener.name.ssl.ssl.principal.mapping.rules": "RULE:^CN=([^,]+),.*$/$1/",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": f"{oauth}LoginModule required;",
        "listener.name.oauth.oauthbearer.sasl.server.callback.handler.class": f"{oauth}ValidatorCallbackHandler",
        "listener.name.oauth.sasl.oauthbearer.expected.audience": AUDIENCE,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # Who comes by the listener that does not ask: the broker itself, and the tests.
        "super.users": "User:ANONYMOUS",
    }
    with running_identity_provider(directory, authority, USER, PASSWORD) as identity:
        keys = identity.keys.as_uri()
        properties["listener.name.oauth.sasl.oauthbearer.jwks.endpoint.url"] = keys
        java_options = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}"]
        with Broker.start(directory, port=plain, properties=properties, java_options=java_options) as broker:
            account = UserScramCredentialUpsertion(
                USER, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), PASSWORD.encode()
            )
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            for future in admin.alter_user_scram_credentials([account], request_timeout=_TIMEOUT).values():
                future.result()
            yield SecureKafka(broker.bootstrap, _at(password), _at(certificate), _at(token), identity, trusted, client)


def _at(port: int) -> str:
    return f"127.0.0.1:{port}"


def _write(issued: trustme.LeafCert, path: Path) -> None:
    """Key and certificates in one file. Kafka's Java clients read keys as PKCS 8 only."""
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(text + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
