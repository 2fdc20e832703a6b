"""The plan of one table, from a sample of its topic, its progress record and the table that exists at its path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from distributary.config import Config
from distributary.decode.renames import Renames, check_renames
from distributary.decode.unwrapped import added_by
from distributary.errors import DistributaryError, TableHalt
from distributary.evolve.diff import check_key, check_key_columns, compatible_types
from distributary.evolve.masks import Marks, check_masks, masks_of
from distributary.evolve.policy import tracked_columns
from distributary.evolve.timestamps import check_timestamps
from distributary.evolve.unknown_columns import check_protected_columns
from distributary.ingest.continuity import check_continuity, not_ours
from distributary.ingest.decode_options import decode_options
from distributary.ingest.framing import check_framing
from distributary.ingest.keyless import settings_by_records, settings_of_filled, without_late_key
from distributary.ingest.record_form import envelope_of_event, payload_of, row_of_document
from distributary.ingest.removal_layout import removal_layout
from distributary.ingest.service_columns import column_policy, service_columns_of
from distributary.ingest.source_tables import check_source_tables, with_source_in_key
from distributary.ingest.source_types import AnnouncedTypes
from distributary.ingest.supported import check_supported
from distributary.ingest.tables import ConfiguredTable
from distributary.ingest.topic_format import KnownFormat, detect_format
from distributary.lake.layout import LayoutChanges, changes, check_layout, wanted_layout
from distributary.preflight.configured_types import types_differ
from distributary.preflight.conflicting_types import before_table_exists
from distributary.preflight.existing_table import ExistingTable
from distributary.preflight.inferred_columns import infer_columns, parse_records
from distributary.preflight.plan_warning import Code, PlanWarning
from distributary.preflight.retention_warnings import retention_warnings
from distributary.preflight.sample import Sample
from distributary.preflight.table_context import TableContext
from distributary.preflight.table_plan import ALTER, CONTINUE, CREATE, HALT, UP_TO_DATE, WAIT, TablePlan
from distributary.preflight.table_warnings import table_warnings
from distributary.progress.record import Progress
from distributary.types.record_schema import RecordSchema


def halted_plan(table: ConfiguredTable, error: DistributaryError) -> TablePlan:
    """The plan of a table that would halt before its records are read."""
    return replace(_empty_plan(table), action=HALT, error=error.as_dict())


def plan_table(
    table: ConfiguredTable,
    config: Config,
    sample: Sample,
    progress: Progress | None,
    lake: ExistingTable | None,
    now: int,
    announced_types: AnnouncedTypes = lambda _topic: {},
) -> tuple[TablePlan, TableContext]:
    """The plan of one table, and the context that its warnings were derived from.

    `now`: milliseconds since 1970. `announced_types` returns the column types of a topic that the connector
    announces outside of its records.
    """
    table = replace(table, settings=settings_of_filled(table.settings, progress))
    columns = lake.of_the_source(service_columns_of(table.settings)) if lake else {}
    plan = replace(
        _empty_plan(table), start=sample.start, end=sample.end, records=sample.left, columns=columns,
        widened_before=lake.widened if lake else {},
        key=progress.key if progress else (), connector=progress.connector if progress else config.source.connector,
    )  # fmt: skip
    context = TableContext(config.source, table.settings, sample, now, progress, table_columns=columns)
    layout_diff = changes(wanted_layout(table.settings), lake.layout) if lake and columns else None
    try:
        _check_place(table, sample, progress, lake, columns)
        context = _infer(context, columns, announced_types, only_known=not sample.head)
        inferred = context.inferred
        plan = replace(plan, mode=context.settings.mode)
        plan = replace(
            plan, by_value=inferred.by_value, possible_types=inferred.possible_types, untyped=inferred.untyped
        )
        if progress is None or progress.is_new:
            check_protected_columns(table.settings, context.known_columns)
        plan = _with_columns(plan, context, columns, exists=lake is not None)
        plan = _with_layout(plan, context, layout_diff)
    except TableHalt as halt:
        plan = replace(plan, action=HALT, error=(halt if columns else before_table_exists(halt)).as_dict())
    warnings = [*table_warnings(context), *retention_warnings(context), *_layout_warnings(table, lake, layout_diff)]
    if plan.action != HALT and (differing := types_differ(context)) is not None:
        warnings.append(differing)
    return replace(plan, warnings=tuple(sorted(warnings, key=lambda warning: warning.code.value))), context


def _empty_plan(table: ConfiguredTable) -> TablePlan:
    settings = table.settings
    layout = removal_layout(settings).value
    return TablePlan(table.name, table.topic, table.path, settings.match, settings.where, settings.mode, layout=layout)


def _check_place(
    table: ConfiguredTable,
    sample: Sample,
    progress: Progress | None,
    lake: ExistingTable | None,
    columns: Mapping[str, str],
) -> None:
    """Raises TableHalt unless the service wrote the table, the config still fits it and Kafka still has its next
    records (the checks that TableWorker makes)."""
    if progress is not None:
        check_continuity(progress, sample.topic, sample.first, table.settings, table.path)
        check_timestamps(progress.timestamps, table.settings, columns)
        renames = Renames(table.settings.rename)
        check_renames(progress.renames, renames, columns)
        check_masks(masks_of(table.settings), progress.masks, renames, columns)
    elif lake is not None and columns and lake.has_files:
        raise not_ours(table.path)


def _infer(
    context: TableContext, columns: Mapping[str, str], announced_types: AnnouncedTypes, *, only_known: bool
) -> TableContext:
    """The context with the format and the columns that the records show.

    If there is nothing left to apply (`only_known`), the newest records show them. The table has applied those, so a
    halt that they would cause is ignored.
    """
    sample, settings, progress = context.sample, context.settings, context.progress
    records = sample.head or sample.newest
    if not records:
        return context
    known = KnownFormat(progress.connector, progress.unwrapped) if progress else None
    properties = context.source.connector_properties
    try:
        source = context.source
        has_order = bool(source.order)
        check_framing(records, sample.topic.name, source.format)
        topic_format = detect_format(
            records, sample.topic.name, source.connector, added_by(properties), known, has_order
        )
        settings = settings_by_records(settings, topic_format, progress)
        context = replace(context, settings=settings)
        topic_format = without_late_key(topic_format, records, settings, progress, has_columns=bool(columns))
        check_supported(settings, topic_format, is_avro=source.format == "avro")
        topic_format = with_source_in_key(topic_format, settings)
        context = replace(context, topic_format=topic_format)
        reads_before = settings.mode == "append"
        inner = (
            payload_of if topic_format.in_payload_object else envelope_of_event if topic_format.cloud_events else None
        )
        inner = row_of_document if topic_format.documents else inner
        sampled = map(inner, sample.records()) if inner is not None else sample.records()
        parsed = parse_records(sampled, topic_format.unwrapped, before=reads_before)
        context = replace(context, records=tuple(parsed))
        key = (progress.key if progress else ()) or Renames(settings.rename).all_of(topic_format.key or settings.key)
        options = decode_options(
            context.source, settings, topic_format, key, masks=masks_of(settings), reads_before=reads_before
        )
        schema = RecordSchema(columns, {name: columns[name] for name in key if name in columns})
        policy = column_policy(source, settings)
        inferred = infer_columns(parsed, schema, options, policy, key, settings, progress)
        if any(not column.has_schema for column in inferred.observed):
            announced = compatible_types(
                announced_types(sample.topic.name), Renames(settings.rename).as_source(columns), options.types
            )
            options = replace(options, types=replace(options.types, announced=announced))
            inferred = infer_columns(parsed, schema, options, policy, key, settings, progress)
        return replace(context, inferred=inferred)
    except TableHalt:
        if only_known:
            return context
        raise


def _with_columns(plan: TablePlan, context: TableContext, columns: Mapping[str, str], *, exists: bool) -> TablePlan:
    """The plan with the changes of the table's columns. Raises TableHalt."""
    topic_format, settings, progress = context.topic_format, context.settings, context.progress
    if not context.sample.head or topic_format is None:
        return replace(plan, action=UP_TO_DATE if progress else WAIT, form=_form(context))
    key = Renames(settings.rename).all_of(topic_format.key or settings.key)
    known = progress.key if progress and progress.key else key
    if not topic_format.key:  # else the columns of the records' keys are compared
        check_key(known, key)
    known_table = progress.source_table if progress else None
    check_source_tables(context.inferred.source_tables, known_table, context.sample.topic.name, settings, known)
    if context.inferred.conflict is not None:
        raise context.inferred.conflict
    marks = Marks(progress.masks if progress else None, columns)
    for column in context.inferred.observed:
        marks.check(column.marks if column.is_key else tracked_columns(settings.schema_changes, columns, column.marks))
    plan = replace(plan, key=known, connector=context.connector, form=_form(context))
    observed = context.inferred.observed
    evolved = column_policy(context.source, settings).changes(columns, observed, known)
    after = {**columns, **evolved.added, **evolved.widened}
    if observed:
        check_key_columns(known, after, settings.where)
    action = CREATE if not (exists and columns) else ALTER if evolved else CONTINUE
    if action == CREATE and not after:
        action = WAIT  # the topic has only tombstones: no record shows a column yet
    return replace(plan, action=action, columns=after, added=evolved.added, widened=evolved.widened)


def _with_layout(plan: TablePlan, context: TableContext, layout_diff: LayoutChanges | None) -> TablePlan:
    """The plan with the changes of the table's properties and layout. Raises TableHalt."""
    wanted = wanted_layout(context.settings)
    if plan.action == WAIT or wanted.is_empty:
        return plan
    check_layout(wanted, {**plan.columns, **service_columns_of(context.settings)}, plan.path)
    if layout_diff is None:
        return replace(
            plan, properties=wanted.properties, partitioned_by=wanted.partition_by, clustered_by=wanted.cluster_by or ()
        )
    action = ALTER if layout_diff and plan.action in (CONTINUE, UP_TO_DATE) else plan.action
    return replace(plan, action=action, properties=layout_diff.properties, clustered_by=layout_diff.cluster_by or ())


def _layout_warnings(
    table: ConfiguredTable, lake: ExistingTable | None, layout_diff: LayoutChanges | None
) -> list[PlanWarning]:
    if lake is None or layout_diff is None or not layout_diff.partitions:
        return []
    wanted = ", ".join(table.settings.partition_by) or "none"
    return [
        PlanWarning(
            Code.PARTITIONS_DIFFER,
            "the table has other partitions than the config, and keeps them",
            layout_diff.partitions,
            f"the table is partitioned by {', '.join(lake.layout.partition_by) or 'nothing'}, by the config {wanted}",
        )
    ]


def _form(context: TableContext) -> str | None:
    if context.topic_format is None:
        return None
    return "rows" if context.is_unwrapped else "envelope"
