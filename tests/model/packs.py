"""Packs of cases for one run of the service: many histories in one table, the same for the same seed."""

from __future__ import annotations

from dataclasses import replace
from itertools import count as count_from
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis.strategies import SearchStrategy
from tests.model.case import Case, Kept
from tests.model.delivery import Delivery
from tests.model.encoding import Form
from tests.model.packing import packed, with_truncates
from tests.model.source.history import Read, Truncate
from tests.model.source.layout import LAYOUTS
from tests.model.strategies import ALL, COMPACTED, UPSERTED, Wanted, deliveries, histories

T = TypeVar("T")


def drawn(strategy: SearchStrategy[T], count: int, seed: int) -> list[T]:
    """A number of values of a strategy; the same seed gives the same values."""
    found: list[T] = []

    @hypothesis_seed(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: T) -> None:
        found.append(value)

    collect()
    return found[:count]


def pack(flavour: str, count: int, seed: int, kept: Kept = UPSERTED, wanted: Wanted = ALL, batches: int = 3) -> Case:
    """A number of histories in one table. The seed also chooses the delivery: every fourth topic is compacted, and
    every second history has no snapshots (Wanted.reads). A commit takes a second or two, so the number of batches is
    limited, besides those that pauses make."""
    compacted = seed % 4 == 3
    wanted = replace(wanted, reads=wanted.reads and seed % 2 == 0)
    if compacted:
        wanted = replace(COMPACTED, reads=wanted.reads)
    layout = sorted(LAYOUTS)[seed // 2 % len(LAYOUTS)]
    for attempt in count_from(0):
        history = packed(drawn(histories(wanted), count, seed + 1000 * attempt))
        truncates = sum(isinstance(operation, Truncate) for operation in history.operations())
        history = with_truncates(history, {truncates * (seed % 3 + 1) // 4, truncates - seed % 5 - 1})
        delivery = drawn(deliveries(compacted=compacted), 3, seed + 1000 * attempt)[-1]
        case = Case(flavour, history, layout, delivery, Form(schema=seed % 3 == 0), kept)
        case = begun(replace(case, delivery=_scaled(case, delivery, batches)))
        if case.reaches_truth() and case.happen().decidable():
            return case
    raise AssertionError("there is no end to numbers")


def unwrapped_pack(flavour: str, count: int, seed: int, form: Form) -> Case:
    """As pack(), of records in a form of bare rows. Records without positions are not repeated in part, and are
    compared only at the end: before that, repeated records can't be distinguished from new ones."""
    result = bool(form.added) and str(form.unwrapped).startswith("rewrite")
    case = pack(flavour, count, 2 * seed, wanted=replace(ALL, truncates=False, large=False, many_moves=result))
    again = tuple(one for one in case.delivery.again if result or one.only is None)
    delivery = replace(case.delivery, again=again, pauses=() if not result else (1,))
    return begun(replace(case, form=form, delivery=delivery))


def begun(case: Case) -> Case:
    """The case with what is there when a service first reads the topic: all records before the first pause. It sees
    no growth of the topic among them (see delivery.grows_unseen)."""
    first = [arrived.sending for arrived in case.happen().arrived if not arrived.phase]
    return replace(case, delivery=replace(case.delivery, first_read=max(first, default=0)))


def _scaled(case: Case, delivery: Delivery, batches: int) -> Delivery:
    """The delivery with its numbers scaled to the length of the stream."""
    sent = len(replace(case, delivery=Delivery()).happen().arrived)
    if case.flavour.startswith("postgresql") and case.history.has(Read):
        # A snapshot's row stands by its offset, which says nothing of another partition's.
        delivery = replace(delivery, grown=0)
    again = tuple(replace(one, back=one.back * sent // 100 + 1) for one in delivery.again)
    return replace(delivery, again=again, pauses=delivery.pauses[:1], at_most=sent // batches + 1)
