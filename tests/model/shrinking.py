"""Makes a failing case smaller in few runs, because a run is expensive: large reductions first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.model.case import Case
from tests.model.delivery import Delivery
from tests.model.source.history import Read, Step, Together, Transaction


def shrunk(case: Case, fails: Callable[[Case], bool], attempts: int) -> Case:
    """A smaller case that fails, too, found in a limited number of tries."""
    left = attempts
    while True:
        for smaller in _smaller(case):
            if left <= 0:
                return case
            left -= 1
            if fails(smaller):
                case = smaller
                break
        else:
            return case


def _smaller(case: Case) -> Iterator[Case]:
    """Smaller cases, the smallest first."""
    history, delivery = case.history, case.delivery
    for plain in _plainer(delivery):
        yield replace(case, delivery=plain)
    size = len(history.steps) // 2
    while size:
        for start in range(0, len(history.steps), size):
            steps = history.steps[:start] + history.steps[start + size :]
            yield replace(case, history=replace(history, steps=steps))
        size //= 2
    for number, step in enumerate(history.steps):
        for less in _smaller_steps(step):
            steps = (*history.steps[:number], less, *history.steps[number + 1 :])
            yield replace(case, history=replace(history, steps=steps))
    for row in history.rows:
        rows = tuple(other for other in history.rows if other != row)
        yield replace(case, history=replace(history, rows=rows))


def _plainer(delivery: Delivery) -> Iterator[Delivery]:
    for number in range(len(delivery.again)):
        yield replace(delivery, again=delivery.again[:number] + delivery.again[number + 1 :])
    for number in range(len(delivery.pauses)):
        yield replace(delivery, pauses=delivery.pauses[:number] + delivery.pauses[number + 1 :])
    for number in range(len(delivery.rests)):
        yield replace(delivery, rests=delivery.rests[:number] + delivery.rests[number + 1 :])
    plain = Delivery()
    for name in ("grown", "first_read", "compacted", "held", "partitions", "tombstones", "at_most"):
        if getattr(delivery, name) != getattr(plain, name):
            yield replace(delivery, **{name: getattr(plain, name)})


def _smaller_steps(step: Step) -> Iterator[Step]:
    if isinstance(step, Transaction) and len(step.operations) > 1:
        for number in range(len(step.operations)):
            yield Transaction(step.operations[:number] + step.operations[number + 1 :])
    elif isinstance(step, Together):
        yield Transaction(tuple(operation for script in step.transactions for operation in script))
        for number, script in enumerate(step.transactions):
            for index in range(len(script)):
                less = script[:index] + script[index + 1 :]
                scripts = (*step.transactions[:number], less, *step.transactions[number + 1 :])
                yield replace(step, transactions=scripts)
    elif isinstance(step, Read) and step.behind:
        yield replace(step, behind=0)
