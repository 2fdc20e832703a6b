"""Kafka properties for the two clients."""

from __future__ import annotations

import pytest

from distributary.config.clients import librdkafka_options, spark_options, system_properties
from distributary.errors import UsageError

BASE = {"bootstrap.servers": "b:9092"}


def test_a_name_and_password_become_a_jaas_line_for_java() -> None:
    given = {**BASE, "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "me", "sasl.password": 'a"b\\c'}
    options = spark_options(given)
    assert options["kafka.sasl.jaas.config"].endswith('ScramLoginModule required username="me" password="a\\"b\\\\c";')
    assert "kafka.sasl.password" not in options
    assert librdkafka_options(given)["sasl.password"] == 'a"b\\c'


def test_a_jaas_line_becomes_name_and_password_for_librdkafka() -> None:
    java = spark_options({**BASE, "sasl.username": "me", "sasl.password": 'a"b\\c'})
    jaas = java["kafka.sasl.jaas.config"]
    options = librdkafka_options({**BASE, "sasl.jaas.config": jaas})
    assert (options["sasl.username"], options["sasl.password"]) == ("me", 'a"b\\c')


def test_aborted_transactions_are_never_read() -> None:
    assert spark_options(BASE)["kafka.isolation.level"] == "read_committed"


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        ({"ssl.truststore.location": "/t.jks"}, "kafka-truststore"),
        ({"ssl.keystore.location": "/k.jks"}, "kafka-keystore"),
        ({"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"}, "kafka-jaas"),
    ],
)
def test_what_only_java_can_use_is_reported(extra: dict[str, str], code: str) -> None:
    with pytest.raises(UsageError) as error:
        librdkafka_options({**BASE, **extra})
    assert error.value.code == code
    assert error.value.fix


@pytest.mark.parametrize("mechanism", ["GSSAPI", "AWS_MSK_IAM"])
def test_a_login_that_one_of_the_clients_does_not_know_is_reported(mechanism: str) -> None:
    with pytest.raises(UsageError) as error:
        librdkafka_options({**BASE, "sasl.mechanism": mechanism})
    assert error.value.code == "kafka-sasl-mechanism"
    assert "SCRAM-SHA-512" in error.value.fix


OAUTH = {
    **BASE,
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://idp.example.com/token",
}
CLIENT = {
    "sasl.oauthbearer.client.credentials.client.id": "me",
    "sasl.oauthbearer.client.credentials.client.secret": 'a"b\\c',
    "sasl.oauthbearer.scope": "kafka",
    "sasl.oauthbearer.extensions": r"logicalCluster=lkc-1,identityPoolId=pool-a\,pool-b",
    "https.ca.location": "/ca.pem",
}
JAAS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    ' clientId="me" clientSecret="a\\"b\\\\c" scope="kafka"'
    ' extension_logicalCluster="lkc-1" extension_identityPoolId="pool-a,pool-b"'
)


def test_a_login_by_oauth_is_configured_for_each_client_in_its_own_words() -> None:
    java, c = spark_options({**OAUTH, **CLIENT}), librdkafka_options({**OAUTH, **CLIENT})
    assert java["kafka.sasl.jaas.config"] == (f'{JAAS} ssl.truststore.type="PEM" ssl.truststore.location="/ca.pem";')
    assert java["kafka.sasl.login.callback.handler.class"].endswith(".OAuthBearerLoginCallbackHandler")
    assert java["kafka.sasl.oauthbearer.token.endpoint.url"] == "https://idp.example.com/token"
    assert not [name for name in java if name.removeprefix("kafka.") in CLIENT]
    assert c == {
        **OAUTH,
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": 'a"b\\c',
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.extensions": r"logicalCluster=lkc-1,identityPoolId=pool-a\,pool-b",
        "https.ca.location": "/ca.pem",
    }


def test_a_jaas_line_for_oauth_says_the_same_as_the_properties() -> None:
    line = {**OAUTH, "sasl.jaas.config": f"{JAAS};", "https.ca.location": "/ca.pem"}
    assert librdkafka_options(line) == librdkafka_options({**OAUTH, **CLIENT})
    assert spark_options(line) == spark_options({**OAUTH, **CLIENT})


def test_options_of_a_jaas_line_may_stand_in_single_quotes_or_in_none() -> None:
    jaas = "OAuthBearerLoginModule required clientId=me clientSecret='a\"b' extension_logicalCluster = lkc-1;"
    options = librdkafka_options({**OAUTH, "sasl.jaas.config": jaas})
    assert options["sasl.oauthbearer.client.id"] == "me"
    assert options["sasl.oauthbearer.client.secret"] == 'a"b'
    assert options["sasl.oauthbearer.extensions"] == "logicalCluster=lkc-1"


def test_a_jvm_knows_where_tokens_may_come_from() -> None:
    assert list(system_properties({**OAUTH, **CLIENT}).values()) == ["https://idp.example.com/token"]
    assert not system_properties(BASE)


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        (OAUTH, "kafka-oauth"),
        ({**OAUTH, **CLIENT, "sasl.oauthbearer.token.endpoint.url": "file:/token"}, "kafka-oauth"),
        ({**OAUTH, **CLIENT, "sasl.oauthbearer.extensions": "logicalCluster"}, "kafka-oauth"),
        ({**OAUTH, **CLIENT, "sasl.mechanism": "PLAIN"}, "kafka-oauth"),
        ({**OAUTH, "sasl.jaas.config": f'{JAAS} ssl.truststore.location="/t.jks";'}, "kafka-jaas"),
    ],
)
def test_a_login_by_oauth_that_can_not_be_is_reported(properties: dict[str, str], code: str) -> None:
    with pytest.raises(UsageError) as error:
        librdkafka_options({**BASE, **properties})
    assert error.value.code == code
    assert error.value.fix
    assert 'a"b' not in str(error.value)
