"""What an operator may accept so that a halted table goes on, and which halts ask for it."""

from __future__ import annotations

from enum import Enum


class Accept(str, Enum):
    """What is accepted, named as `distributary resume` has it."""

    NOTHING = "nothing"
    """The table is tried again."""
    LOSS = "loss"
    """Records that Kafka no longer has are passed over."""
    RESET = "reset"
    """The topic is another one now: it is read from its start, on top of the rows that are there."""
    REBUILD = "rebuild"
    """All rows go, and the table is filled again from the start of its topic."""


ASKED_BY = {"records-lost": Accept.LOSS, "topic-recreated": Accept.RESET}
"""Halts, by code, that nothing but this (or a rebuild) ends."""
