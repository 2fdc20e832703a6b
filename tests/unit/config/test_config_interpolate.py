"""`${env:…}` and `${file:…}`."""

from __future__ import annotations

from pathlib import Path

import pytest

from distributary.config.interpolate import (
    LARGEST_FILE,
    Interpolated,
    InterpolationError,
    escaped,
    interpolate,
    unescaped,
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "value")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("TRICKY", "${env:NAME}")
    monkeypatch.delenv("NOT_SET", raising=False)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("plain $NAME {env:NAME}", "plain $NAME {env:NAME}"),
        ("${env:NAME}", "value"),
        ("a ${env:NAME}-${env:NAME} b", "a value-value b"),
        ("${env:NOT_SET:-default: with, signs}", "default: with, signs"),
        ("${env:EMPTY:-default}", "default"),
        ("${env:NAME:-default}", "value"),
        ("${env:NOT_SET:-}", ""),
        ("${env:EMPTY}", ""),
        ("${env:TRICKY}", "${env:NAME}"),
        ("$${env:NAME} ${env:NAME}", "${env:NAME} value"),
        ("$${x}", "${x}"),
    ],
)
def test_values(written: str, expected: str, tmp_path: Path) -> None:
    assert interpolate(written, tmp_path) == expected


@pytest.mark.parametrize("text", ["", "$", "${", "$${", "$$${{", "${env:NAME}", "a $${ b ${"])
def test_any_text_can_be_written_where_references_are_looked_for(text: str, tmp_path: Path) -> None:
    assert unescaped(escaped(text)) == interpolate(escaped(text), tmp_path) == text


@pytest.mark.parametrize("written", ["${env:NAME}", "${", "$${ ${}", "$${${x}"])
def test_a_reference_is_no_literal_text(written: str) -> None:
    assert unescaped(written) is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"secret\n", "secret"),
        (b"secret\r\n", "secret"),
        (b"secret\n\n", "secret\n"),
        (b" secret ", " secret "),
        (b"a\nb\n", "a\nb"),
        (b"", ""),
        ("pässwörd\n".encode(), "pässwörd"),
        (b"${env:NAME}", "${env:NAME}"),
    ],
)
def test_one_line_end_at_the_end_of_a_file_is_no_part_of_it(content: bytes, expected: str, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "pass word").write_bytes(content)
    assert interpolate("${file:secrets/pass word}", tmp_path) == expected
    assert interpolate(f"${{file:{tmp_path}/secrets/pass word}}", Path("/")) == expected


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("${env:NOT_SET}", "env-missing"),
        ("${file:not/there}", "file-missing"),
        ("${file:.}", "file-unreadable"),
        ("${file:bytes}", "file-unreadable"),
        ("${file:large}", "file-unreadable"),
        ("${env:}", "interpolation-syntax"),
        ("${env:1A}", "interpolation-syntax"),
        ("${file:}", "interpolation-syntax"),
        ("${NAME}", "interpolation-syntax"),
        ("${}", "interpolation-syntax"),
        ("${env:NAME", "interpolation-syntax"),
        ("${env:${env:NAME}}", "interpolation-syntax"),
    ],
)
def test_faults(written: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"hunter2\xff")
    (tmp_path / "large").write_bytes(b"x" * (LARGEST_FILE + 1))
    with pytest.raises(InterpolationError) as caught:
        interpolate(written, tmp_path)
    assert caught.value.code == code
    assert "hunter2" not in caught.value.message


def test_it_is_known_whether_a_value_came_from_outside(tmp_path: Path) -> None:
    assert not isinstance(interpolate("plain", tmp_path), Interpolated)
    assert not isinstance(interpolate("$${env:NAME}", tmp_path), Interpolated)
    outside = interpolate("${env:NAME}", tmp_path)
    default = interpolate("${env:NOT_SET:-x}", tmp_path)
    assert isinstance(outside, Interpolated)
    assert outside.from_outside
    assert isinstance(default, Interpolated)
    assert not default.from_outside
    assert repr(outside) == "'${env:NAME}'"
