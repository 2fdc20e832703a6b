"""Misspelt names under `kafka` are refused; Kafka's own names are not."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from distributary.config.properties import KafkaProperties

_ADAPTER: TypeAdapter[dict[str, object]] = TypeAdapter(KafkaProperties)
# Those of a consumer in Kafka 4.3, but for the ones that the service owns or refuses.
_NAMES = """
bootstrap.servers client.dns.lookup group.protocol group.remote.assignor heartbeat.interval.ms session.timeout.ms
fetch.min.bytes fetch.max.bytes fetch.max.wait.ms max.partition.fetch.bytes send.buffer.bytes receive.buffer.bytes
client.id client.rack reconnect.backoff.ms reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms
enable.metrics.push metrics.sample.window.ms metrics.num.samples metrics.recording.level check.crcs
socket.connection.setup.timeout.ms socket.connection.setup.timeout.max.ms connections.max.idle.ms request.timeout.ms
default.api.timeout.ms max.poll.records max.poll.interval.ms exclude.internal.topics allow.auto.create.topics
metadata.max.age.ms metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms partition.assignment.strategy
security.protocol ssl.protocol ssl.provider ssl.cipher.suites ssl.enabled.protocols ssl.keystore.type
ssl.keystore.location ssl.keystore.password ssl.key.password ssl.keystore.key ssl.keystore.certificate.chain
ssl.truststore.certificates ssl.truststore.type ssl.truststore.location ssl.truststore.password
ssl.keymanager.algorithm ssl.trustmanager.algorithm ssl.endpoint.identification.algorithm
ssl.secure.random.implementation sasl.mechanism sasl.jaas.config sasl.kerberos.service.name sasl.kerberos.kinit.cmd
sasl.kerberos.ticket.renew.window.factor sasl.kerberos.ticket.renew.jitter
sasl.kerberos.min.time.before.relogin sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.login.refresh.min.period.seconds sasl.login.refresh.buffer.seconds sasl.login.connect.timeout.ms
sasl.login.read.timeout.ms sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwks.endpoint.refresh.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.header.urlencode sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.scope
sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
"""


@pytest.mark.parametrize("name", _NAMES.split())
def test_no_name_of_kafkas_own_is_taken_for_a_misspelt_one(name: str) -> None:
    assert not misspelt(name)


def test_a_misspelt_one_is() -> None:
    assert misspelt("secuirty.protocol")
    assert misspelt("Bootstrap.Server")


def misspelt(name: str) -> bool:
    try:
        _ADAPTER.validate_python({"bootstrap.servers": "a:1", name: "x"})
    except ValidationError as error:
        return any("no property of this name" in one["msg"] for one in error.errors())
    return False
