"""What `run` would do with one table: from its topic's sample, its own record and what lies at its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from distributary.config import Config
from distributary.decode.observed_columns import renames_of, table_columns
from distributary.decode.record_schema import RecordSchema
from distributary.decode.renames import Renames, check_renames
from distributary.decode.unwrapped import added_by
from distributary.errors import DistributaryError, TableHalt
from distributary.evolve.diff import check_key, check_key_columns, taken_as
from distributary.evolve.masks import Marks, check_masks, masks_of
from distributary.evolve.policy import allowed_changes, heeded
from distributary.evolve.unknown_columns import check_protected_columns
from distributary.ingest.batch_writer import service_columns_of
from distributary.ingest.continuity import check_continuity, not_ours
from distributary.ingest.decode_options import decode_options
from distributary.ingest.framing import check_framing
from distributary.ingest.keyless import as_kept, as_records_tell
from distributary.ingest.record_form import envelope_of_event, payload_of
from distributary.ingest.source_tables import check_source_tables, with_source_in_key
from distributary.ingest.source_types import Told
from distributary.ingest.supported import check_supported
from distributary.ingest.tables import ConfiguredTable
from distributary.ingest.topic_format import KnownFormat, detect_format
from distributary.lake.layout import LayoutChanges, changes, check_layout, wanted_layout
from distributary.preflight.existing_table import Stored
from distributary.preflight.inferred_columns import cuts, shown
from distributary.preflight.plan_warning import Code, Concern
from distributary.preflight.retention_warnings import concerns_of_keeping
from distributary.preflight.sample import Sample
from distributary.preflight.table_context import Scene
from distributary.preflight.table_warnings import concerns
from distributary.progress.record import Progress

CREATE, ALTER, GO_ON, UP_TO_DATE, WAIT, HALT = "create", "alter", "go_on", "up_to_date", "wait", "halt"


@dataclass(frozen=True)
class TablePlan:
    """One table: what `run` would do.

    `action` is create, alter (columns are added or widened, properties or the clustering set, then it goes on),
    go_on, up_to_date, wait (the topic has no record yet) or halt. `entry` is the `match` that counts for it,
    `where` its place. `form` is envelope or rows, None where no record tells. `columns` are those that the table
    has or gets (name to Spark type), `added` those that it gets, `widened` those that get a wider type;
    `properties` are those that it gets, `partitioned_by` and `clustered_by` the columns by which it will be laid
    out from then on (empty where that stays); `start` and `end` the offsets per partition between which records are
    to be applied, `records` how many offsets these are. `by_value` are the columns whose types values alone tell,
    `guesses` what these may be beside, `untyped` the columns of which all values were null; by the source's names.
    `error` has the keys `code`, `message` and `fix`, for a table that would halt.
    """

    table: str
    topic: str
    path: str
    entry: str
    where: str
    mode: str
    action: str = WAIT
    connector: str | None = None
    form: str | None = None
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, str] = field(default_factory=dict)
    widened: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()
    by_value: Mapping[str, str] = field(default_factory=dict)
    guesses: Mapping[str, str] = field(default_factory=dict)
    untyped: tuple[str, ...] = ()
    start: Mapping[int, int] = field(default_factory=dict)
    end: Mapping[int, int] = field(default_factory=dict)
    records: int = 0
    warnings: tuple[Concern, ...] = ()
    error: Mapping[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        """The same with JSON's types only."""
        named = {name: getattr(self, name) for name in ("table", "topic", "path", "entry", "where", "mode", "action")}
        partitions = [
            {"partition": p, "start": self.start.get(p, 0), "end": end} for p, end in sorted(self.end.items())
        ]
        return {
            **named,
            "connector": self.connector,
            "form": self.form,
            "key": list(self.key),
            "columns": dict(self.columns),
            "added": dict(self.added),
            "widened": dict(self.widened),
            "properties": dict(self.properties),
            "partitioned_by": list(self.partitioned_by),
            "clustered_by": list(self.clustered_by),
            "by_value": dict(self.by_value),
            "guesses": dict(self.guesses),
            "untyped": list(self.untyped),
            "partitions": partitions,
            "records": self.records,
            "warnings": [concern.as_json() for concern in self.warnings],
            "error": dict(self.error) if self.error is not None else None,
        }


def refused(one: ConfiguredTable, error: DistributaryError) -> TablePlan:
    """The plan of a table that can't be looked at, or that can't be what it is for a reason outside of its topic."""
    return replace(_bare(one), action=HALT, error=error.told())


def planned(
    one: ConfiguredTable,
    config: Config,
    sample: Sample,
    progress: Progress | None,
    lake: Stored | None,
    now: int,
    told: Told = lambda _topic: {},
) -> tuple[TablePlan, Scene]:
    """The plan of one table, and the scene that its warnings were looked for in. `now`: milliseconds since 1970; `told`
    gives the types of a topic's columns that the connector tells beside its records."""
    one = replace(one, settings=as_kept(one.settings, progress))
    columns = lake.of_the_source(service_columns_of(one.settings)) if lake else {}
    plan = replace(
        _bare(one), start=sample.start, end=sample.end, records=sample.left, columns=columns,
        key=progress.key if progress else (), connector=progress.connector if progress else config.source.connector,
    )  # fmt: skip
    scene = Scene(config.source, one.settings, sample, now, progress, table_columns=columns)
    lacks = changes(wanted_layout(one.settings), lake.layout) if lake and columns else None
    try:
        _check_place(one, sample, progress, lake, columns)
        scene = _looked(scene, columns, told, only_known=not sample.head)
        found = scene.shown
        plan = replace(plan, mode=scene.settings.mode)
        plan = replace(plan, by_value=found.by_value, guesses=found.guesses, untyped=found.untyped)
        if progress is None or progress.is_new:
            check_protected_columns(one.settings, scene.known_columns)
        plan = _with_columns(plan, scene, columns, exists=lake is not None)
        plan = _with_layout(plan, scene, lacks)
    except TableHalt as halt:
        plan = replace(plan, action=HALT, error=halt.told())
    warnings = [*concerns(scene), *concerns_of_keeping(scene), *_concerns_of_layout(one, lake, lacks)]
    return replace(plan, warnings=tuple(sorted(warnings, key=lambda concern: concern.code.value))), scene


def _bare(one: ConfiguredTable) -> TablePlan:
    settings = one.settings
    return TablePlan(one.name, one.topic, one.path, settings.match, settings.where, settings.mode)


def _check_place(
    one: ConfiguredTable, sample: Sample, progress: Progress | None, lake: Stored | None, columns: Mapping[str, str]
) -> None:
    """The table must be ours, and Kafka must still have what comes next (see TableWorker)."""
    if progress is not None:
        check_continuity(progress, sample.topic, sample.first, one.settings, one.path)
        renames = Renames(one.settings.rename)
        check_renames(progress.renames, renames, columns)
        check_masks(masks_of(one.settings), progress.masks, renames, columns)
    elif lake is not None and columns and lake.has_files:
        raise not_ours(one.path)


def _looked(scene: Scene, columns: Mapping[str, str], told: Told, *, only_known: bool) -> Scene:
    """The scene with what the records show. Where nothing is left to be applied, the newest records show it; what
    they would halt the table for is no news then."""
    sample, settings, progress = scene.sample, scene.settings, scene.progress
    records = sample.head or sample.newest
    if not records:
        return scene
    known = KnownFormat(progress.connector, progress.unwrapped) if progress else None
    properties = scene.source.connector_properties
    try:
        source = scene.source
        has_order = bool(source.order)
        check_framing(records, sample.topic.name, source.format)
        look = detect_format(records, sample.topic.name, source.connector, added_by(properties), known, has_order)
        settings = as_records_tell(settings, look, progress)
        scene = replace(scene, settings=settings)
        check_supported(settings, look)
        look = with_source_in_key(look, settings)
        scene = replace(scene, look=look)
        reads_before = settings.mode == "append"
        inner = payload_of if look.payload_alone else envelope_of_event if look.cloud_events else None
        sampled = map(inner, sample.records()) if inner is not None else sample.records()
        found = cuts(sampled, look.unwrapped, before=reads_before)
        scene = replace(scene, cuts=tuple(found))
        key = (progress.key if progress else ()) or Renames(settings.rename).all_of(look.key or settings.key)
        options = decode_options(scene.source, settings, look, key, masks=masks_of(settings), reads_before=reads_before)
        schema = RecordSchema(columns, {name: columns[name] for name in key if name in columns})
        shows = shown(found, schema, options)
        if any(not one.has_schema for one in shows.observed):
            announced = taken_as(told(sample.topic.name), Renames(settings.rename).as_source(columns), properties)
            options = replace(options, types=replace(options.types, announced=announced))
            shows = shown(found, schema, options)
        return replace(scene, shown=shows)
    except TableHalt:
        if only_known:
            return scene
        raise


def _with_columns(plan: TablePlan, scene: Scene, columns: Mapping[str, str], *, exists: bool) -> TablePlan:
    """The plan with what would become of the table's columns. Raises TableHalt."""
    look, settings, progress = scene.look, scene.settings, scene.progress
    if not scene.sample.head or look is None:
        return replace(plan, action=UP_TO_DATE if progress else WAIT, form=_form(scene))
    key = Renames(settings.rename).all_of(look.key or settings.key)
    known = progress.key if progress and progress.key else key
    check_key(known, key)
    known_table = progress.source_table if progress else None
    check_source_tables(scene.shown.source_tables, known_table, scene.sample.topic.name, settings, known)
    marks = Marks(progress.masks if progress else None, columns)
    for one in scene.shown.observed:
        if one.is_key:
            check_key(known, one.types)
        marks.check(one.marks if one.is_key else heeded(settings.schema_changes, columns, one.marks))
    plan = replace(plan, key=known, connector=scene.connector, form=_form(scene))
    reserved = service_columns_of(settings)
    observed = scene.shown.observed
    evolved = allowed_changes(
        settings.schema_changes, columns, table_columns(observed), reserved, known, renames_of(observed)
    )
    after = {**columns, **evolved.added, **evolved.widened}
    if observed:
        check_key_columns(known, after, settings.where)
    action = CREATE if not (exists and columns) else ALTER if evolved else GO_ON
    if action == CREATE and not after:
        action = WAIT  # tombstones alone: no record tells a column yet
    return replace(plan, action=action, columns=after, added=evolved.added, widened=evolved.widened)


def _with_layout(plan: TablePlan, scene: Scene, lacks: LayoutChanges | None) -> TablePlan:
    """The plan with what would become of the table's properties and layout. Raises TableHalt."""
    wanted = wanted_layout(scene.settings)
    if plan.action == WAIT or wanted.says_nothing:
        return plan
    check_layout(wanted, {**plan.columns, **service_columns_of(scene.settings)}, plan.path)
    if lacks is None:
        return replace(
            plan, properties=wanted.properties, partitioned_by=wanted.partition_by, clustered_by=wanted.cluster_by or ()
        )
    action = ALTER if lacks and plan.action in (GO_ON, UP_TO_DATE) else plan.action
    return replace(plan, action=action, properties=lacks.properties, clustered_by=lacks.cluster_by or ())


def _concerns_of_layout(one: ConfiguredTable, lake: Stored | None, lacks: LayoutChanges | None) -> list[Concern]:
    if lake is None or lacks is None or not lacks.partitions:
        return []
    wanted = ", ".join(one.settings.partition_by) or "none"
    return [
        Concern(
            Code.PARTITIONS_DIFFER,
            "the table's files are not parted as the config says: the table goes on as it is",
            lacks.partitions,
            f"they are parted by {', '.join(lake.layout.partition_by) or 'nothing'}, the config says {wanted}",
        )
    ]


def _form(scene: Scene) -> str | None:
    if scene.look is None:
        return None
    return "rows" if scene.is_unwrapped else "envelope"
