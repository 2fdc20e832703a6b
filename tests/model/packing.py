"""Packs many histories into one run of the service, and unpacks the one that failed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import count, zip_longest

from tests.model.source.history import (
    History,
    Move,
    Operation,
    Read,
    Rename,
    Replace,
    Step,
    Together,
    Transaction,
    Truncate,
)

ROOM = 8
"""The number of keys that each history has for itself."""


def packed(histories: Sequence[History]) -> History:
    """One history with the steps of all in turn. Truncates and restarts affect all; each has its own keys."""
    moved = [_moved(history, number * ROOM) for number, history in enumerate(histories)]
    rows = tuple(row for history in moved for row in history.rows)
    turns = zip_longest(*(history.steps for history in moved))
    return History(rows, tuple(step for turn in turns for step in turn if step is not None))


def with_truncates(history: History, wanted: Collection[int]) -> History:
    """The history with only those of its truncates: each affects all packed histories, and after many of them no rows
    are left to compare."""
    numbers = count()

    def of(operations: Iterable[Operation]) -> tuple[Operation, ...]:
        return tuple(one for one in operations if not isinstance(one, Truncate) or next(numbers) in wanted)

    return replace(history, steps=tuple(_with_operations(step, of) for step in history.steps))


def part(history: History, numbers: Iterable[int]) -> History:
    """The part of a packed history that affects the histories with these numbers."""
    wanted = {key for number in numbers for key in range(number * ROOM, (number + 1) * ROOM)}

    def of(operations: Iterable[Operation]) -> tuple[Operation, ...]:
        return tuple(operation for operation in operations if _keys(operation) <= wanted)

    steps: list[Step] = []
    for step in history.steps:
        if isinstance(step, Transaction):
            steps += [Transaction(of(step.operations))] if of(step.operations) else []
        elif isinstance(step, Together):
            left = tuple(map(of, step.transactions))
            steps += [replace(step, transactions=left)] if any(left) else []
        elif not isinstance(step, Read) or step.keys is None or set(step.keys) <= wanted:
            steps.append(step)
    return History(tuple(row for row in history.rows if row in wanted), tuple(steps))


def _with_operations(step: Step, of: Callable[[Iterable[Operation]], tuple[Operation, ...]]) -> Step:
    """The step, with `of` applied to the operations of each of its transactions."""
    if isinstance(step, Transaction):
        return Transaction(of(step.operations))
    if isinstance(step, Together):
        return replace(step, transactions=tuple(map(of, step.transactions)))
    return step


def _moved(history: History, by: int) -> History:
    def of(operations: Iterable[Operation]) -> tuple[Operation, ...]:
        return tuple(_operation_moved(operation, by) for operation in operations)

    steps = [_with_operations(step, of) for step in history.steps]
    for index, step in enumerate(steps):
        if isinstance(step, Read):
            keys = range(ROOM) if step.keys is None else step.keys
            steps[index] = replace(step, keys=tuple(key + by for key in keys))
    return History(tuple(row + by for row in history.rows), tuple(steps))


def _operation_moved(operation: Operation, by: int) -> Operation:
    if isinstance(operation, Truncate):
        return operation
    if isinstance(operation, Move):
        return Move(tuple((old + by, new + by) for old, new in operation.pairs))
    if isinstance(operation, Rename):
        return Rename(tuple(key + by for key in operation.keys))
    if isinstance(operation, Replace):
        return Replace(operation.old + by, operation.new + by)
    return replace(operation, key=operation.key + by)


def _keys(operation: Operation) -> set[int]:
    if isinstance(operation, Truncate):
        return set()
    if isinstance(operation, Move):
        return {key for pair in operation.pairs for key in pair}
    if isinstance(operation, Replace):
        return {operation.old, operation.new}
    return set(operation.keys) if isinstance(operation, Rename) else {operation.key}
