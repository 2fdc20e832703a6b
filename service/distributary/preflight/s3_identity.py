"""The identities by which Spark and the commands without Spark access S3, from the config and the environment alone.
Spark uses `fs.s3a.aws.credentials.provider`; the other commands use the default credential chain of Amazon's libraries.
If the two differ, one of them works with other rights.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from distributary.config import Config
from distributary.preflight.check_result import CheckPassed, CheckWarning

_PROVIDERS = "aws.credentials.provider"
# core-default.xml of Hadoop 3.5. Web identity is not among them: a pod with one becomes the machine.
_DEFAULT = (
    "TemporaryAWSCredentialsProvider",
    "SimpleAWSCredentialsProvider",
    "EnvironmentVariableCredentialsProvider",
    "IAMInstanceCredentialsProvider",
)
_WEB_IDENTITY = "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"
_MACHINE = "the machine's role"


@dataclass(frozen=True)
class Identity:
    """An identity. `secret` distinguishes static keys and is never shown."""

    shown: str
    secret: tuple[str, ...] = field(default=(), repr=False)
    is_known: bool = True


def uses_s3(config: Config) -> bool:
    """Whether tables or checkpoint are in S3."""
    return bool(_buckets(config))


def identities_agree(config: Config) -> CheckPassed | CheckWarning:
    """As whom each bucket is reached, and whether that is the same with Spark and without."""
    without = identity_without_spark(os.environ)
    properties = config.spark_properties()
    sentences = []
    for bucket in _buckets(config):
        spark = identity_of_spark(properties, bucket, os.environ)
        if not spark.is_known:
            return CheckWarning(
                "identity-unknown",
                f"s3://{bucket}: Spark asks {spark.shown}; the commands without it use {without.shown}",
                "see to it that both are the same",
            )
        if spark != without:
            differ = "other static keys" if spark.shown == without.shown else without.shown
            return CheckWarning(
                "identities-differ",
                f"s3://{bucket}: Spark uses {spark.shown}, and the commands without it use {differ}",
                _way_out(without),
            )
        sentences.append(f"s3://{bucket}: Spark and the commands without it use {spark.shown}")
    return CheckPassed("; ".join(sentences))


def _way_out(without: Identity) -> str:
    if without.shown.startswith("web identity"):
        return f"set spark.hadoop.fs.s3a.{_PROVIDERS}: {_WEB_IDENTITY}, or take the role off the service account"
    return (
        "give both the same: keys below `spark` and in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in neither; see"
        " docs/object-stores.md"
    )


def _buckets(config: Config) -> list[str]:
    places = map(urlsplit, (config.root(), config.checkpoint))
    return sorted({place.netloc for place in places if place.scheme in ("s3", "s3a", "s3n")})


def identity_without_spark(environment: Mapping[str, str]) -> Identity:
    """The first identity that the libraries of the commands without Spark find."""
    finders = (_keys_of_environment, _profile, _web_identity, _container)
    return next((identity for find in finders if (identity := find(environment))), Identity(_MACHINE))


def identity_of_spark(properties: Mapping[str, str], bucket: str, environment: Mapping[str, str]) -> Identity:
    """The identity of the first of Spark's providers that finds one; a bucket's own settings come before those of all
    buckets."""

    def setting(name: str) -> str:
        own = properties.get(f"spark.hadoop.fs.s3a.bucket.{bucket}.{name}")
        return own or properties.get(f"spark.hadoop.fs.s3a.{name}", "")

    if properties.get("spark.hadoop.hadoop.security.credential.provider.path") or setting(
        "security.credential.provider.path"
    ):
        return Identity("a store of credentials (credential.provider.path)", is_known=False)
    names = [name.strip() for name in setting(_PROVIDERS).split(",") if name.strip()] or list(_DEFAULT)
    # Spark takes the environment's keys for S3A's where the config has none.
    key, secret, token = (
        setting(name) or environment.get(variable, "")
        for name, variable in (
            ("access.key", "AWS_ACCESS_KEY_ID"),
            ("secret.key", "AWS_SECRET_ACCESS_KEY"),
            ("session.token", "AWS_SESSION_TOKEN"),
        )
    )
    for name in names:
        for identity in _found_keys(name, (key, secret, token), environment):
            return identity
    return Identity("nobody: no provider of its list finds credentials")


def _found_keys(provider: str, keys: tuple[str, str, str], environment: Mapping[str, str]) -> Iterator[Identity]:
    """The identity that a provider finds, if any."""
    key, secret, token = keys
    name = provider.rpartition(".")[2]
    if name == "TemporaryAWSCredentialsProvider":
        identity = _static(key, secret, token) if token else None
    elif name == "SimpleAWSCredentialsProvider":
        identity = _static(key, secret, "")
    elif name == "EnvironmentVariableCredentialsProvider":
        identity = _keys_of_environment(environment)
    elif name in ("WebIdentityTokenFileCredentialsProvider", "WebIdentityTokenCredentialsProvider"):
        identity = _web_identity(environment)
    elif name in ("ProfileAWSCredentialsProvider", "ProfileCredentialsProvider"):
        identity = _profile(environment)
    elif name in ("ContainerCredentialsProvider", "EC2ContainerCredentialsProviderWrapper"):
        identity = _container(environment)
    elif name == "IAMInstanceCredentialsProvider":
        identity = _container(environment) or Identity(_MACHINE)
    elif name == "InstanceProfileCredentialsProvider":
        identity = Identity(_MACHINE)
    elif name == "DefaultCredentialsProvider":
        finders = (_keys_of_environment, _web_identity, _profile, _container)
        identity = next(
            (first_identity for find in finders if (first_identity := find(environment))), Identity(_MACHINE)
        )
    elif name == "AnonymousAWSCredentialsProvider":
        identity = Identity("nobody (anonymous)")
    else:
        identity = Identity(provider, is_known=False)
    if identity is not None:
        yield identity


def _static(key: str, secret: str, token: str) -> Identity | None:
    return Identity("static keys", (key, secret, token)) if key and secret else None


def _keys_of_environment(environment: Mapping[str, str]) -> Identity | None:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    key, secret, token = (environment.get(name, "") for name in names)
    return _static(key, secret, token)


def _profile(environment: Mapping[str, str]) -> Identity | None:
    name = environment.get("AWS_PROFILE")
    return Identity(f"the profile {name}") if name else None


def _web_identity(environment: Mapping[str, str]) -> Identity | None:
    role = environment.get("AWS_ROLE_ARN")
    return Identity(f"web identity as {role}") if role and environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") else None


def _container(environment: Mapping[str, str]) -> Identity | None:
    if environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        return Identity("the container's role")
    if environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        return Identity("pod identity")
    return None
