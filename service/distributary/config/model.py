"""The config, version 1, as frozen values. Users see the descriptions in the JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from distributary.config import placement
from distributary.config.http import Http
from distributary.config.large_messages import LargeMessages
from distributary.config.masking import Masking, masks_without_salt
from distributary.config.problem import Problem, refuse, with_problems
from distributary.config.properties import KafkaProperties, SparkProperties, revealed
from distributary.config.scalars import Duration, Flag, Location, Section, Text, WholeNumber, seconds
from distributary.config.source import Source
from distributary.config.table import TableSettings, resolve
from distributary.config.table_rule import TableDefaults, TableRule
from distributary.config.target import WAREHOUSE, WHOLE_LOCATION, Quarantine, Target, root_of


def _version(value: int) -> int:
    if value != 1:
        raise Problem("bad-version", "only version 1 of the config is known", "write version: 1").error()
    return value


class Trigger(Section):
    """How often a batch starts, and how large it is."""

    interval: Duration = Field(
        "1s", description="Time from the start of one micro-batch to the next: 500ms, 10s, 1m, 2h."
    )
    max_records: WholeNumber = Field(
        500_000, ge=1, description="Maximum number of records in a batch. Batches of large records have fewer."
    )
    tables_at_once: WholeNumber = Field(
        4,
        ge=1,
        le=64,
        description="How many tables process a batch at the same time. More help many tables on an object store, whose "
        "commits mostly wait for it; with more than 4 batches have fewer bytes.",
    )

    def interval_seconds(self) -> float:
        """The interval in seconds."""
        return seconds(self.interval)


ABOUT_TABLES = ("defaults", "tables", "include", "paused")
"""The keys of a config that name tables and their settings."""


class ConsumerGroup(Section):
    """The consumer group in which Kafka's lag tools see what the tables have applied."""

    enabled: Flag = Field(
        True, description="Whether applied offsets are committed to the group. Nothing else depends on them."
    )
    name: Text | None = Field(
        None, description="Name of the group. Two services need two names. Default: distributary-<source.topic_prefix>."
    )


NamePlaces = Mapping[int | None, Mapping[tuple[str, str], str]]
"""By entry of `tables` (None: `defaults`) the `file:line` of each column that it names, by its key and name."""


class Config(Section):
    """The config of distributary, version 1."""

    version: Annotated[WholeNumber, AfterValidator(_version), WithJsonSchema({"const": 1})] = Field(
        description="Version of the config format: 1."
    )
    kafka: KafkaProperties = Field(
        description="Any property of Kafka's clients under Kafka's own name. bootstrap.servers is required; write "
        "secrets as ${env:NAME} or ${file:PATH}.",
        json_schema_extra={"required": ["bootstrap.servers"]},
    )
    source: Source = Field(description="The connector and its topics.")
    large_messages: LargeMessages | None = Field(
        None, description="The buckets of the connector's large message post processor, if it has one."
    )
    target: Target = Field(description="The directory of the tables, or their catalog.")
    checkpoint: Location = Field(
        description="Directory of Spark's checkpoint, in no table's directory. Each table has its own progress record, "
        "so losing the checkpoint loses nothing. A relative path starts at the config's directory.",
    )
    spark: SparkProperties = Field(
        default_factory=dict,
        validate_default=True,
        description="Any property of Spark; write secrets as ${env:NAME} or ${file:PATH}.",
    )
    defaults: TableDefaults = Field(
        default_factory=TableDefaults,
        description="Settings for all tables: any key of an entry of `tables` except `match`.",
    )
    tables: tuple[TableRule, ...] = Field(
        (),
        validate_default=True,
        description="The tables and their settings. The first entry that matches a table applies.",
    )
    include: tuple[Text, ...] = Field(
        (),
        description="Files with further `tables:`, as paths or globs relative to the config's directory. Their "
        "entries come after those of the main file.",
    )
    paused: Flag = Field(
        False,
        description="true: no table applies anything. The service runs, answers its probes and keeps its lease, so "
        "that no other process takes over.",
    )
    quarantine: Quarantine = Field(
        default_factory=Quarantine, validate_default=True, description="The table of records that can't be applied."
    )
    trigger: Trigger = Field(default_factory=Trigger, description="How often a batch starts, and its size.")
    http: Http = Field(default_factory=Http, description="The status page, the probes and the metrics.")

    consumer_group: ConsumerGroup = Field(
        default_factory=ConsumerGroup, description="The consumer group in which Kafka's lag tools see the service."
    )

    masking: Masking = Field(default_factory=Masking, description="The salt of hashed columns.")

    _places: tuple[str, ...] = PrivateAttr(())
    _name_places: NamePlaces = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _hashes_have_a_salt(cls, data: Any, handler: ModelWrapValidatorHandler[Config]) -> Config:
        problems = masks_without_salt(data)
        try:
            config = handler(data)
        except ValidationError as error:
            raise with_problems(error, problems) from None
        refuse(problems)
        return config

    @field_validator("checkpoint")
    @classmethod
    def _checkpoint_is_apart(cls, checkpoint: str, info: ValidationInfo) -> str:
        target: Target | None = info.data.get("target")
        if target is not None and target.path is not None:
            problem = placement.checkpoint_problem(checkpoint, target.path, target.table)
            if problem is not None:
                raise problem.error()
        return checkpoint

    @field_validator("spark")
    @classmethod
    def _catalog_has_a_warehouse(cls, spark: SparkProperties, info: ValidationInfo) -> SparkProperties:
        target: Target | None = info.data.get("target")
        if target is None or target.catalog is None:
            return spark
        root = root_of(target, spark)
        if not root:
            fix = f"add {WAREHOUSE}: a directory on any file system that Spark knows"
            refuse([Problem("missing-key", "target.catalog needs to know where the tables lie", fix, (WAREHOUSE,))])
        elif not WHOLE_LOCATION.match(root):
            fix = "write the whole path, or one with a scheme such as s3a://"
            refuse([Problem("bad-value", "is not the whole location of the tables", fix, (WAREHOUSE,))])
        checkpoint = info.data.get("checkpoint")
        problem = placement.checkpoint_problem(checkpoint, root, target.table) if checkpoint and root else None
        if problem is not None:
            refuse([replace(problem, loc=(WAREHOUSE,))])
        return spark

    @field_validator("tables", mode="wrap")
    @classmethod
    def _tables_are_distinct(
        cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> tuple[TableRule, ...]:
        problems = list(_repeated(value))
        try:
            rules: tuple[TableRule, ...] = handler(value)
        except ValidationError as error:
            raise with_problems(error, problems) from None
        if not rules:
            fix = 'add an entry, such as - match: "*.*" for all tables'
            problems.append(Problem("no-tables", "no table is named", fix))
        target: Target | None = info.data.get("target")
        if target is not None and placement.schemas_collide(target.table, (rule.match for rule in rules)):
            message = "target.table has no {schema}, so that tables of two schemas would share one path"
            problems.append(Problem("bad-table-template", message, "add {schema}, or name one schema in every match"))
        checkpoint, root = info.data.get("checkpoint"), target and root_of(target, info.data.get("spark"))
        if target is not None and checkpoint and root:
            matches = [rule.match for rule in rules]
            problems += placement.tables_in_checkpoint(matches, checkpoint, root, target.table)
        refuse(problems)
        return rules

    @field_validator("quarantine")
    @classmethod
    def _quarantine_is_apart(cls, quarantine: Quarantine, info: ValidationInfo) -> Quarantine:
        target: Target | None = info.data.get("target")
        if target is None:
            return quarantine
        root = root_of(target, info.data.get("spark"))
        if quarantine.path is not None and root is not None:
            checkpoint = info.data.get("checkpoint")
            problem = placement.quarantine_problem(quarantine.path, checkpoint, root, target.table)
            if problem is not None:
                refuse([replace(problem, loc=("path",))])
        return quarantine

    def kafka_properties(self) -> dict[str, str]:
        """Kafka's client properties, secrets readable. Not for logs."""
        return revealed(self.kafka)

    def spark_properties(self) -> dict[str, str]:
        """Spark's properties, secrets readable. Not for logs."""
        return revealed(self.spark)

    def settings_for(self, schema: str, table: str) -> TableSettings | None:
        """The settings of a table, spelled as in its topic; None if no rule matches it."""
        for i, rule in enumerate(self.tables):
            if fnmatchcase(f"{schema}.{table}", rule.match):
                names = {**self._name_places.get(None, {}), **self._name_places.get(i, {})}
                settings = resolve(rule, self.defaults, self.place_of(i), self.masking.salt, names)
                return replace(settings, paused=settings.paused or self.paused)
        return None

    def quarantine_path(self) -> str:
        """The path of the quarantine table."""
        return self.quarantine.path or f"{self.root()}/_quarantine"

    def root(self) -> str:
        """The directory below which the tables lie, without a slash at its end."""
        return str(root_of(self.target, self.spark)).rstrip("/")

    def consumer_group_name(self) -> str:
        """The group for lag tools."""
        return self.consumer_group.name or f"distributary-{self.source.topic_prefix}"

    def place_of(self, entry: int) -> str:
        """`file:line` of an entry of `tables`, counted from 0; empty if the config did not come from a file."""
        return self._places[entry] if entry < len(self._places) else ""

    def with_tables_of(self, other: Config) -> Config:
        """This config with the tables and their defaults of `other`."""
        copy = self.model_copy(update={name: getattr(other, name) for name in ABOUT_TABLES})
        return copy.with_places(other._places, other._name_places)

    def with_places(self, places: tuple[str, ...], name_places: NamePlaces = MappingProxyType({})) -> Config:
        """This config with the `file:line` of each entry of `tables`, and of the columns that the entries name."""
        copy = self.model_copy()
        copy._places = places
        copy._name_places = name_places
        return copy


def _repeated(rules: Any) -> list[Problem]:
    problems = []
    matches: set[str] = set()
    for i, rule in enumerate(rules if isinstance(rules, (list, tuple)) else ()):
        match = rule.match if isinstance(rule, TableRule) else rule.get("match") if isinstance(rule, dict) else None
        if isinstance(match, str):
            if match in matches:
                message = "an earlier entry has the same match, so that this one never counts"
                problems.append(Problem("same-match", message, "keep one of the two", (i, "match")))
            matches.add(match)
    return problems
