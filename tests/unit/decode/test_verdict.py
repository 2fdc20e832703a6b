"""The reasons for which a record can't be applied, as text; that they are found is told in tests/spark."""

from __future__ import annotations

import pytest

from distributary.decode.reading import Reading
from distributary.decoding.renames import Renames
from distributary.decode.shapes import Shape, Signature, TypeSources, shape_of
from distributary.decode.verdict import verdict


def shape(renames: dict[str, str]) -> Shape:
    types = TypeSources({"id": "int", "nome": "date", "price": "int"}, {}, {}, {}, renames=Renames(renames))
    return shape_of(Signature('["id"]', '["id","nome","price"]'), types)


@pytest.mark.parametrize(
    ("renames", "told"),
    [({"nome": "name", "lacking": "price"}, "'name (source: nome)'"), ({"lacking": "price"}, "'nome'")],
)
def test_values_that_do_not_fit_are_told_with_the_name_that_columns_takes(renames: dict[str, str], told: str) -> None:
    found = shape(renames)
    kinds = {name: codec.target for name, codec in found.row.items()}
    text = verdict(found, Reading("sqlserver", 0, kinds, {"id": "int"}, "-"))
    assert f"THEN {told} END" in text
    assert "THEN 'price' END" in text
