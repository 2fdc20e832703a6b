"""Which properties hold secrets, and whether a secret is written into the config file itself."""

from __future__ import annotations

import re

from pydantic import SecretStr

from distributary.config.interpolate import Interpolated

_ENDS = (
    *("password", "passwd", "passphrase", "secret", "secret.key", "secretkey", "token", "private.key", "privatekey"),
    *("keystore.key", "user.info", "jaas.config", "access.key", "accesskey", "credentials.json", "auth.bearer", "salt"),
)
# Azure's keys end with the account's name.
_CONTAINS = ("client.secret", "account.key", "fixed.token", ".sas.")
CREDENTIALS = r"://[^/@\s]*:[^/@\s]*@"
"""A user and a password in a URL, as a regular expression that Java knows, too."""
PATTERN = "(?i)" + "|".join([*(f"{re.escape(end)}$" for end in _ENDS), *map(re.escape, _CONTAINS)])
"""The names that hold secrets, likewise."""
_DEFAULT = re.compile(r"\$\{env:\w+:-([^{}]*)\}")
_NO_SECRETS = ("", "true", "false")
_PASSWORD_IN_JAAS = re.compile(r"""(password|secret|token)\s*=\s*["']?(?!\$\{)[^\s"';]""", re.IGNORECASE)

FIX = "write ${env:NAME} or ${file:PATH} in its place"


def is_secret(name: str) -> bool:
    """Whether a property of this name holds a secret, by the names that Kafka, Spark and Hadoop use. The config's own
    keys have `_` where those have `.`."""
    return re.search(PATTERN, name.replace("_", ".")) is not None


def has_credentials(url: str) -> bool:
    """Whether the text holds a URL with a user and a password in it."""
    return re.search(CREDENTIALS, url) is not None


def is_inline(name: str, value: str | SecretStr) -> bool:
    """Whether the config itself contains a property's secret, also as the default of a reference."""
    if isinstance(value, SecretStr):
        return False
    written = value.written if isinstance(value, Interpolated) else value
    if has_credentials(written):
        return True
    if not is_secret(name) or value.lower() in _NO_SECRETS:
        return False
    if name.lower().endswith("jaas.config"):
        return _PASSWORD_IN_JAAS.search(_DEFAULT.sub(r"\1", written)) is not None
    return not (isinstance(value, Interpolated) and value.from_outside)
