"""Whether a record can be applied, and if not, why: the reasons in the order in which they are looked for."""

from __future__ import annotations

from distributary.decode import envelope as e
from distributary.decode import sql
from distributary.decode.reading import Reading
from distributary.decode.shapes import Shape


def verdict(shape: Shape, reading: Reading) -> str:
    """STRUCT<code, message> of a typed record (see records.decoded); NULL where it can be applied. The shape's row has
    none but the table's columns."""
    codecs = reading.key_codecs(shape)
    key_lost = " OR ".join(["key_fault IS NOT NULL", *(f"(k{i}_there AND k{i} IS NULL)" for i in range(len(codecs)))])
    all_null = " AND ".join(["true", *(f"k{i} IS NULL" for i in range(len(codecs)))])
    lost, lost_names = _lost(shape, reading)
    applies = "kind NOT IN ('t', 'm', '!')"
    from_row = reading.key_from_row
    no_key_columns = from_row and len(codecs) < len(reading.key)
    keeps_row = "kind IN ('c', 'u', 'r', 'd')" if reading.before else "kind IN ('c', 'u', 'r')"
    needs_key = "false" if reading.keyless else applies
    cases: list[tuple[str, str]] = [
        ("true" if shape.unreadable else "false", _reason(e.BAD_SCHEMA)),
        *(
            (f"fault = {sql.text(reason.code)}", _reason(reason))
            for reason in (*e.UNREADABLE, *e.NOT_STRICT, e.TOO_LONG)
        ),
        *(
            (f"value_fault = {sql.text(reason.code)}", _reason(reason))
            for reason in (e.NOT_JSON, e.WRONG_TYPE, e.TOO_LONG, *e.NOT_STRICT)
        ),
        ("no_envelope", _reason(e.NOT_A_ROW if reading.unwrapped else e.NOT_AN_ENVELOPE)),
        ("kind = '!'", _reason(e.UNKNOWN_OPERATION)),
        ("kind IN ('c', 'u', 'r') AND NOT has_row", _reason(e.NO_ROW)),
        (
            needs_key if no_key_columns else f"{needs_key} AND NOT has_key",
            _reason(e.NO_KEY_COLUMNS if from_row else e.NO_KEY),
        ),
        *((f"{needs_key} AND key_fault = {sql.text(r.code)}", _reason(r)) for r in e.NOT_STRICT),
        # A unique key may have nullable columns, but a key of nothing but NULLs names no row.
        (f"{needs_key} AND ({key_lost} OR ({all_null}))", _reason(e.NO_KEY_COLUMNS if from_row else e.BAD_KEY)),
        (f"kind NOT IN ('x', 'm') AND connector NOT IN ({_family(reading.connector)})", _reason(e.OTHER_CONNECTOR)),
        ("kind NOT IN ('x', 'm') AND misplaced", _reason(e.BAD_POSITION)),
        ("kind NOT IN ('x', 'm') AND pos IS NULL", _reason(e.NO_POSITION)),
        (
            f"{keeps_row} AND {lost}",
            (
                f"named_struct('code', {sql.text(e.BAD_VALUE.code)},"
                f" 'message', concat({sql.text(e.BAD_VALUE.message)}, {lost_names}))"
            ),
        ),
    ]
    whens = " ".join(f"WHEN {condition} THEN {reason}" for condition, reason in cases)
    return f"CASE {whens} END"


def _lost(shape: Shape, reading: Reading) -> tuple[str, str]:
    """Of the columns that hold a value that their type can't hold: BOOLEAN, whether there are any; STRING, which, with
    commas between."""

    def of(letter: str) -> tuple[str, str]:
        lost = {
            name: f"({letter}{i}_there AND {letter}{i} IS NULL{_sent(name, reading)})"
            for i, name in enumerate(shape.row)
        }
        names = (
            f"CASE WHEN {is_lost} THEN {sql.text(name + shape.renames.origin(name))} END"
            for name, is_lost in lost.items()
        )
        listed = ", ".join(names) or "CAST(NULL AS STRING)"
        return f"({' OR '.join(lost.values()) or 'false'})", f"array_join(array({listed}), ', ')"

    if not reading.before:
        return of("c")
    # Of a delete the row before it is kept, of the others the one after.
    (before, before_names), (after, after_names) = of("b"), of("c")
    return (
        f"CASE WHEN kind = 'd' THEN {before} ELSE {after} END",
        f"CASE WHEN kind = 'd' THEN {before_names} ELSE {after_names} END",
    )


def _sent(column: str, reading: Reading) -> str:
    """A value that was not sent is no bad value, even where the placeholder does not fit the column's type."""
    if not reading.missing:
        return ""
    return f" AND NOT coalesce(array_contains(missing, {list(reading.columns).index(column)}), false)"


def _family(connector: str) -> str:
    """MariaDB was read by the MySQL connector before it had its own: their positions are the same."""
    names = ("mysql", "mariadb") if connector in ("mysql", "mariadb") else (connector,)
    return ", ".join(sql.text(name) for name in names)


def _reason(reason: e.Reason) -> str:
    return f"named_struct('code', {sql.text(reason.code)}, 'message', {sql.text(reason.message)})"
