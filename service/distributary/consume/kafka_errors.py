"""Maps errors of Kafka's clients: a failed login, TLS, a missing right, or no answer."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError

from distributary.errors import TransientError

_LOGIN = ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE")
_WHY = ("_RESOLVE", "_TRANSPORT")
_NOBODY = (*_WHY, "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_TIMED_OUT_QUEUE", "_MSG_TIMED_OUT", "REQUEST_TIMED_OUT")
_NOBODY_JAVA = (
    *("TimeoutException", "DisconnectException", "NetworkException", "BrokerNotAvailableException"),
    *("LeaderNotAvailableException", "NotLeaderOrFollowerException", "CoordinatorNotAvailableException"),
)

_CHECK_ADDRESS = "check kafka.bootstrap.servers and security.protocol, and that this machine may connect to the brokers"
_CHECK_LOGIN = "check the sasl.* properties under `kafka`"
_CHECK_TLS = "check the ssl.* properties under `kafka`"
_CHECK_RIGHTS = (
    "allow Read on the topics with the prefix source.topic_prefix to this config's user; the table then continues"
)

OFFSETS_GONE = "kafka-offsets"
"""The code of the error for offsets that Kafka does not have."""
_GONE = ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE")

UNREACHABLE = "kafka-unreachable"
"""The code of the error for brokers that do not answer."""

CODES = ("kafka-login", "kafka-tls", "kafka-not-allowed", "kafka-refused", UNREACHABLE)
"""The codes of the errors that are Kafka's."""


def refusal(request: str, error: KafkaError, met: Sequence[KafkaError] = ()) -> TransientError:
    """The error to raise if Kafka's client failed to do `request` ("list topics").

    The client's last `error` is often only a timeout; its cause is then among the errors that it `met` before.
    """
    every = [*met, error]
    if login := next((known_error for known_error in every if known_error.name() in _LOGIN), None):
        return TransientError("kafka-login", f"Kafka did not {request}: {login.str()}", _CHECK_LOGIN)
    if tls := next((known_error for known_error in every if known_error.name() == "_SSL"), None):
        return TransientError("kafka-tls", f"Kafka did not {request}: {tls.str()}", _CHECK_TLS)
    if error.name().endswith("AUTHORIZATION_FAILED"):
        return TransientError("kafka-not-allowed", f"Kafka did not {request}: {error.str()}", _CHECK_RIGHTS)
    if error.name() in _GONE:
        return offsets_gone(error.name())
    if error.name() not in _NOBODY:
        return TransientError(
            "kafka-refused", f"Kafka did not {request}: {error.str()}", "if it lasts, look into the log of the brokers"
        )
    reason = next((known_error for known_error in met if known_error.name() in _WHY), error)
    return TransientError(
        UNREACHABLE,
        f"Kafka did not {request}: {reason.str()}",
        _CHECK_ADDRESS,
    )


def offsets_gone(name: str) -> TransientError:
    """The error to raise if Kafka no longer has the offsets to be read; `name` is that of the client's own error, or
    what is missing."""
    return TransientError(
        OFFSETS_GONE,
        f"Kafka no longer has the offsets that are to be read ({name})",
        "the table checks its topic again; if records were lost it halts and lists them",
    )


def check_none_gone(found: int, needed: int) -> None:
    """Raises TransientError if fewer of a batch's records were found when they were read again: the topic was compacted
    or cut in between, or an operator has set one aside. The batch is to be repeated with the records that are left."""
    if found < needed:
        raise offsets_gone(f"{needed - found} of {needed} records of the batch are gone")


def java_refusal(names: Sequence[str]) -> TransientError | None:
    """The error for the class names of a Java exception of Spark's client and its causes. None if none is Kafka's."""
    kafkas = [name for name in names if name.startswith("org.apache.kafka.")]
    no_token = [name for name in names if kafkas and name == "javax.security.auth.login.LoginException"]
    for name in (*kafkas, *no_token):
        if name.endswith(("AuthenticationException", "LoginException")):
            return TransientError("kafka-login", f"the login to Kafka failed ({name})", _CHECK_LOGIN)
        if name.endswith("AuthorizationException"):
            return TransientError("kafka-not-allowed", f"Kafka refuses this user ({name})", _CHECK_RIGHTS)
    for name in kafkas:
        if name.endswith(_NOBODY_JAVA):
            return TransientError(UNREACHABLE, f"Kafka does not answer ({name})", _CHECK_ADDRESS)
    return None
