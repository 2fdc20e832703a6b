"""The unit tests of the rules or the gate detect every deliberate fault of the rules."""

from __future__ import annotations

import ast

import pytest
from tests.model.mutation_check import noticed
from tests.model.mutations import Mutation
from tests.model.rule_mutations import MUTATIONS


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: str(mutation.name))
def test_the_rules_still_have_what_the_fault_changes(mutation: Mutation) -> None:
    assert mutation.new in mutation.patched()
    ast.parse(mutation.patched())  # code that can't be read would be noticed by no test


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: str(mutation.name))
def test_a_fault_of_the_rules_is_noticed(mutation: Mutation) -> None:
    assert noticed(mutation), f"rule {mutation.rule} broken, and nothing failed"
