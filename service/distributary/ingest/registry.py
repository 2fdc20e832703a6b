"""The schema registry: the schemas that Avro records name, each asked for once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from distributary.config.source import SchemaRegistry, Source
from distributary.decode.avro.schema import AvroSchema, NotAnAvroSchema, parse_avro_schema
from distributary.errors import DistributaryError, SetupError, TableHalt, TransientError
from distributary.logs import get_logger

_TIMEOUT = 10.0  # seconds that an answer may take
_RETRIES = 2  # by the client itself; after those the table's own turns come
_FIRST_WAIT = 200  # milliseconds before the first of them
# A registry of several nodes may know a new schema on some of them only for a while.
_PATIENCE = 300.0  # seconds after which a schema that the registry does not know will not come any more
_AVRO = (None, "AVRO")
_log = get_logger(__name__)


class Registry:
    """A connection to the registry, shared by all tables.

    Schemas never change: each is asked for once, and kept. Raises SetupError if the config's files can't be used.
    """

    def __init__(
        self, settings: SchemaRegistry, clock: Callable[[], float] = time.monotonic, patience: float = _PATIENCE
    ) -> None:
        self._client = _client(settings)
        self.long_ids = settings.apicurio_use_id is not None
        """Whether ids of eight bytes in front of records are those that the registry knows."""
        self._clock = clock
        self._patience = patience
        self._known: dict[str, AvroSchema | NotAnAvroSchema] = {}
        self._unknown_since: dict[str, float] = {}

    def schema(self, address: str) -> AvroSchema | NotAnAvroSchema:
        """The schema with that number or GUID, or the reason why it has no columns.

        Raises TransientError while the registry does not answer or does not know it yet, TableHalt if it still does not
        know it after five minutes.
        """
        if address not in self._known:
            found, references = self._asked(address)
            self._unknown_since.pop(address, None)
            try:
                if found.schema_type not in _AVRO or not found.schema_str:
                    raise NotAnAvroSchema(f"a schema of type {found.schema_type}")
                self._known[address] = parse_avro_schema(found.schema_str, references)
            except NotAnAvroSchema as error:
                _log.warning("a schema of the registry can't be read", schema=address, reason=str(error))
                self._known[address] = error
        return self._known[address]

    def _asked(self, address: str) -> tuple[Schema, list[str]]:
        """The registry's answer, and the schemas that it refers to."""
        try:
            if address.isdecimal():
                found = self._client.get_schema(int(address))
            else:
                found = self._client.get_schema_by_guid(address)
            return found, self._references(found)
        except SchemaRegistryError as error:
            raise self._refused(address, error) from error
        except Exception as error:  # the errors of the HTTP library beneath, which is not the same in all versions
            raise TransientError(
                "registry-unreachable",
                f"the schema registry did not answer ({type(error).__name__})",
                "check that it runs and that source.schema_registry has its address",
            ) from error

    def _references(self, schema: Schema) -> list[str]:
        """The schemas that this one refers to, those first that others of them refer to."""
        texts: dict[str, None] = {}
        for reference in schema.references or ():
            found = self._client.get_version(str(reference.subject), int(reference.version or 0)).schema
            texts.update(dict.fromkeys([*self._references(found), found.schema_str or "null"]))
        return list(texts)

    def _refused(self, address: str, error: SchemaRegistryError) -> DistributaryError:
        status = error.http_status_code
        if status in (401, 403):
            return TransientError(
                "registry-refused",
                f"the schema registry refused to answer ({status})",
                "check basic.auth.user.info, bearer.auth.token or the certificate under source.schema_registry",
            )
        if status != 404:
            return TransientError(
                "registry-failed",
                f"the schema registry answered with an error ({status})",
                "the request is repeated; see the registry's log",
            )
        if error.error_code not in (40400, 40402, 40403):
            return TransientError(
                "registry-address",
                "source.schema_registry.url is not that of a schema registry: what listens there does not know its API",
                "set the URL that has /schemas/ids/ below it; Apicurio's ends with /apis/ccompat/v7",
            )
        since = self._unknown_since.setdefault(address, self._clock())
        message = f"the schema registry does not know the schema {address}, which records of the topic name"
        if self._clock() - since < self._patience:
            return TransientError("schema-unknown", message, "check that it is the registry that the connector uses")
        return TableHalt(
            "schema-unknown",
            f"{message}, for more than {self._patience / 60:.0f} minutes",
            "check that it is the registry that the connector uses; restore the schema under the same id there, then"
            " start the table again",
        )


def registry_of(source: Source) -> Registry | None:
    """The registry of a config; None if its records are not Avro. Raises SetupError."""
    return Registry(source.schema_registry) if source.schema_registry and source.format == "avro" else None


def _client(settings: SchemaRegistry) -> SchemaRegistryClient:
    properties: dict[str, Any] = {
        **settings.properties(),
        "timeout": _TIMEOUT,
        "max.retries": _RETRIES,
        "retries.wait.ms": _FIRST_WAIT,
    }
    try:
        return SchemaRegistryClient.new_client(properties)
    except (ValueError, OSError) as error:
        raise SetupError(
            "registry-config",
            f"source.schema_registry can't be used: {_reason(error)}",
            "check its files and values; `basic.auth.user.info` is user:password",
        ) from error


def _reason(error: Exception) -> str:
    """What is wrong, without values of the config."""
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else type(error).__name__
