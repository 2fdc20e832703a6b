"""Each broken config gives its faults and no others, each at its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import broken_configs

from distributary.config import load
from distributary.errors import ConfigError


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISTRIBUTARY_TEST_NOT_SET", raising=False)


@pytest.mark.parametrize("path", broken_configs.FILES, ids=lambda path: path.stem)
def test_gives_exactly_its_faults(path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(path)
    found = [(fault.code, fault.line, str(fault.file)) for fault in caught.value.faults]
    assert sorted(found) == broken_configs.expected(path)
    for fault in caught.value.faults:
        assert fault.message
        assert "hunter2" not in str(fault)
        assert "Input should" not in fault.message  # pydantic's words are not for users
    assert f"{path.name}:" in str(caught.value) or "tables/" in str(caught.value)


def test_the_folder_is_found() -> None:
    assert len(broken_configs.FILES) > 60
