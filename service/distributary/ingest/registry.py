"""The schema registry: reads the schemas that Avro records name, each of them once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from distributary.config.source import SchemaRegistry, Source
from distributary.decode.avro.schema import AvroSchema, NotAnAvroSchema, parse_avro_schema
from distributary.errors import SetupError, TransientError
from distributary.logs import get_logger
from distributary.types.bounds import Bounds

_TIMEOUT = 10.0  # seconds that an answer may take
_RETRIES = 2  # by the client itself; after those the table's own turns come
_FIRST_WAIT = 200  # milliseconds before the first retry
# A registry of several nodes may know a new schema on some of them only for a while.
_UNKNOWN_ID_TIMEOUT = 300.0  # seconds after which a schema that the registry does not know will not come any more
_UNKNOWN_ID_TIMEOUT_AGAIN = (
    10.0  # seconds, where another one did not come a while ago: ids may be made up again and again
)
_AGAIN_WITHIN = 3_600.0  # seconds
_MOST_REFERENCES = 100
"""Each is a request. Debezium's connectors register schemas that refer to none."""
_LARGEST_ID = 2**31 - 1  # of Confluent's registry; Apicurio's content ids have 64 bits
_AVRO = (None, "AVRO")
_log = get_logger(__name__)


class Registry:
    """A connection to the registry, shared by all tables.

    Schemas never change: each is requested once, and remembered. Raises SetupError if the config's files can't be used.
    """

    def __init__(
        self,
        settings: SchemaRegistry,
        clock: Callable[[], float] = time.monotonic,
        unknown_id_timeout: float = _UNKNOWN_ID_TIMEOUT,
        bounds: Bounds | None = None,
    ) -> None:
        self.client = _client(settings)
        """Asks the registry, and can register schemas."""
        self._bounds = bounds or Bounds()
        self.long_ids = settings.apicurio_use_id is not None
        """Whether ids of eight bytes in front of records are those that the registry knows."""
        self._clock = clock
        self._unknown_id_timeout = unknown_id_timeout
        self._known: dict[str, AvroSchema | NotAnAvroSchema] = {}
        self._unknown_since: dict[str, float] = {}
        self._gave_up_at: float | None = None
        self._has_answered = False
        self.unknown: set[str] = set()
        """Schemas that did not come. Their records are rejected."""

    def schema(self, address: str) -> AvroSchema | NotAnAvroSchema:
        """The schema with that number or GUID, or the reason why it has no columns.

        Raises TransientError while the registry does not answer, or does not know the schema yet. A schema that it does
        not know for five minutes counts as missing; for ten seconds, if another schema was missing within the last
        hour.
        """
        if address not in self._known and self._is_out_of_range(address):
            self._known[address] = NotAnAvroSchema(f"no registry has a schema {address}")
        if address not in self._known:
            try:
                self._known[address] = self._read(address)
            except TransientError as error:
                if error.code != "schema-unknown" or not self._has_timed_out(address):
                    raise
                _log.warning("schema not known to the registry: its records go to quarantine", schema=address, fix=_FIX)
                self.unknown.add(address)
                self._known[address] = NotAnAvroSchema(f"the registry does not know the schema {address}")
        return self._known[address]

    def _read(self, address: str) -> AvroSchema | NotAnAvroSchema:
        """The registry's schema, or the reason why it has no columns. Raises TransientError."""
        try:
            registered, references = self._request(address)
            self._has_answered = True
            self._unknown_since.pop(address, None)
            if registered.schema_type not in _AVRO or not registered.schema_str:
                raise NotAnAvroSchema(f"a schema of type {registered.schema_type}")
            return parse_avro_schema(registered.schema_str, references, self._bounds)
        except NotAnAvroSchema as error:
            _log.warning("a schema of the registry can't be read", schema=address, reason=str(error))
            # The error itself would keep its callers' objects in memory.
            return NotAnAvroSchema(str(error))

    def schemas(self, addresses: Iterable[str]) -> dict[str, AvroSchema | NotAnAvroSchema]:
        """As `schema`, for several addresses. Requests all of them before it raises, so that the service waits for all
        unknown schemas at the same time."""
        results = {address: self._schema_or_unknown(address) for address in addresses}
        for schema in results.values():
            if isinstance(schema, TransientError):
                raise schema
        return {address: schema for address, schema in results.items() if not isinstance(schema, TransientError)}

    def _schema_or_unknown(self, address: str) -> AvroSchema | NotAnAvroSchema | TransientError:
        try:
            return self.schema(address)
        except TransientError as error:
            if error.code != "schema-unknown":
                raise
            return error

    def _request(self, address: str) -> tuple[Schema, list[str]]:
        """The registry's answer, and the schemas that it refers to. Raises TransientError and NotAnAvroSchema."""
        try:
            if address.isdecimal():
                registered = self.client.get_schema(int(address))
            else:
                registered = self.client.get_schema_by_guid(address)
            return registered, self._references(registered)
        except NotAnAvroSchema:
            raise
        except SchemaRegistryError as error:
            raise self._refused(address, error) from error
        except Exception as error:  # the errors of the HTTP library beneath, which is not the same in all versions
            raise TransientError(
                "registry-unreachable",
                f"the schema registry did not answer ({type(error).__name__})",
                "check that it runs and that source.schema_registry has its address",
            ) from error

    def _references(self, schema: Schema) -> list[str]:
        """The schemas that this one refers to, those first that others of them refer to. Each is asked for once.

        Raises NotAnAvroSchema if there are too many.
        """
        texts: dict[str, None] = {}
        asked: set[tuple[str, int]] = set()
        # No recursion: whoever registers schemas decides how deep it would be.
        path = [(schema, iter(schema.references or ()))]
        while path:
            current, rest = path[-1]
            reference = next(rest, None)
            if reference is None:
                path.pop()
                if path:
                    texts[current.schema_str or "null"] = None
                continue
            place = (str(reference.subject), int(reference.version or 0))
            if place in asked:
                continue
            asked.add(place)
            if len(asked) > _MOST_REFERENCES:
                raise NotAnAvroSchema(f"it refers to more than {_MOST_REFERENCES} other schemas")
            referenced = self.client.get_version(*place).schema
            path.append((referenced, iter(referenced.references or ())))
        return list(texts)

    def _is_out_of_range(self, address: str) -> bool:
        return address.isdecimal() and int(address) > (2**63 - 1 if self.long_ids else _LARGEST_ID)

    def _has_timed_out(self, address: str) -> bool:
        """Whether the schema was requested for long enough to count as missing."""
        now = self._clock()
        since = self._unknown_since.setdefault(address, now)
        is_again = self._gave_up_at is not None and now - self._gave_up_at < _AGAIN_WITHIN
        timeout = self._unknown_id_timeout
        if now - since < (min(timeout, _UNKNOWN_ID_TIMEOUT_AGAIN) if is_again else timeout):
            return False
        self._gave_up_at = now
        return True

    def _refused(self, address: str, error: SchemaRegistryError) -> TransientError:
        status = error.http_status_code
        if status in (401, 403):
            return TransientError(
                "registry-refused",
                f"the schema registry refused to answer ({status})",
                "check basic.auth.user.info, bearer.auth.token or the certificate under source.schema_registry",
            )
        is_known = status == 404 and error.error_code in (40400, 40402, 40403)
        self._has_answered |= is_known
        if is_known or (self._has_answered and status in _OF_THE_ID):
            return unknown_schema(address)
        if status != 404:
            return TransientError(
                "registry-failed",
                f"the schema registry answered with an error ({status})",
                "the request is repeated; see the registry's log",
            )
        return TransientError(
            "registry-address",
            "source.schema_registry.url is no address of a schema registry: the server there does not have its API",
            "set the URL that has /schemas/ids/ below it; Apicurio's ends with /apis/ccompat/v7",
        )


class KnownSchemas:
    """The schemas that one table's records have named so far: `by_address` is None without a registry. It is never
    changed but replaced: who decodes with it, now or later, keeps the schemas of its time."""

    def __init__(self, registry: Registry | None) -> None:
        self._registry = registry
        self.by_address: dict[str, AvroSchema | NotAnAvroSchema] | None = None if registry is None else {}

    def learn(self, addresses: Iterable[str]) -> bool:
        """Requests schemas from the registry. Returns whether there are new ones. Raises what Registry.schemas
        raises."""
        if self._registry is None or self.by_address is None:
            return False
        new = self._registry.schemas(sorted(set(addresses) - self.by_address.keys()))
        if new:
            self.by_address = {**self.by_address, **new}
        return bool(new)


_FIX = "check that it is the registry that the connector uses"
_OF_THE_ID = (400, 404, 422)
"""The HTTP statuses for an unknown id, from a registry that has this API. An older registry has none for GUIDs."""


def unknown_schema(address: str) -> TransientError:
    """The error for a schema that the registry does not know yet."""
    return TransientError(
        "schema-unknown",
        f"the schema registry does not know the schema {address}, which records of the topic name",
        _FIX,
    )


def registry_of(source: Source) -> Registry | None:
    """The registry of a config; None if its records are not Avro. Raises SetupError."""
    if not source.schema_registry or source.format != "avro":
        return None
    return Registry(source.schema_registry, bounds=source.limits.bounds())


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
    """The reason of an error, without values of the config."""
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else type(error).__name__
