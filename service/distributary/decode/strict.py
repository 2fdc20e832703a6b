"""What Spark's JSON reader passes over without a word: text after the JSON value, a field twice in one object, half a
character. What is looked for, and at which price: docs/quarantine.md.

from_json reads the first JSON value of a text and does not look further; of a field that is there twice it takes the
last one, where get_json_object takes the first; `\\ud800`, half of a character, becomes a question mark.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from distributary.decode import envelope as e
from distributary.decode import sql

_CORRUPT = "_corrupt"
# By default Spark takes 'text' and NaN for JSON.
_OPTIONS = {"columnNameOfCorruptRecord": _CORRUPT, "allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
# Also, no text of more than 20 million characters, and no number of more than a thousand digits.
LONGEST = 20_000_000
_NO_LIMITS = {"maxStringLen": str(2**31 - 1), "maxNumLen": str(2**31 - 1)}
_OPEN, _CLOSE = '{"values":[', '],"end":"1"}'


def framed(text: str, fields: str, *, with_schema: bool = True) -> Column:
    """STRUCT<values: ARRAY<STRUCT<the fields>>, end: STRING, _corrupt: STRING>: the text, read within a frame.

    What comes after the JSON object shows by the frame: there is more than one value, its end is missing, or the whole
    is no JSON. `text` is SQL, `fields` are those of a struct in DDL. A text of any length is read where a schema tells
    the fields: what tells them without one passes over what is too long, so that a value would be lost without a word.
    """
    return F.expr(_framed(text, fields, with_schema=with_schema))


def _framed(text: str, fields: str, *, with_schema: bool = True) -> str:
    ddl = f"values ARRAY<STRUCT<{fields}>>, end STRING, {_CORRUPT} STRING"
    whole = f"concat('{_OPEN}', {text}, '{_CLOSE}')"
    options = ", ".join(
        f"'{name}', '{value}'" for name, value in {**_OPTIONS, **(_NO_LIMITS if with_schema else {})}.items()
    )
    return f"from_json({whole}, {sql.text(ddl)}, map({options}))"


def only(frame: str) -> str:
    """The object in a frame; NULL where there is none."""
    return f"get({frame}.values, 0)"


def broken(frame: str) -> str:
    """BOOLEAN: the text within a frame, see framed(), is not one JSON object that from_json has read as it was asked
    to."""
    return (
        f"({frame} IS NULL OR {frame}.{_CORRUPT} IS NOT NULL OR {only(frame)} IS NULL"
        f" OR size({frame}.values) <> 1 OR {frame}.end IS NULL)"
    )


def begins_object(text: str) -> str:
    """BOOLEAN: the text begins as a JSON object does; of any other nothing can be read."""
    return f"startswith(trim(LEADING ' \\t\\r\\n' FROM {text}), '{{')"


def fault(text: str, frame: str, ambiguous: str) -> str:
    """STRING: why the text is not one JSON object that all read alike, as a reason's code (envelope.REASONS).

    NULL where it is one, or is NULL. `frame` is what framed() made of the text, `ambiguous` a condition (see below).
    """
    return (
        f"CASE WHEN {text} IS NULL THEN NULL WHEN {broken(frame)} THEN"
        # It reads the names of the first JSON object's fields, and does not look further either.
        f" CASE WHEN json_object_keys({text}) IS NULL THEN '{e.NOT_JSON.code}'"
        f" WHEN {_is_alone(text)} THEN '{e.WRONG_TYPE.code}'"
        f" WHEN octet_length({text}) > {LONGEST} THEN '{e.TOO_LONG.code}' ELSE '{e.TEXT_AFTER.code}' END"
        f" WHEN {ambiguous} THEN '{e.AMBIGUOUS.code}' END"
    )


def fault_of_usual(text: str, frame: str, ambiguous: str) -> str:
    """The same of a text which, if it is broken, does not begin as an object. Of others it would not count, and takes
    expressions that Spark does not compile."""
    return (
        f"CASE WHEN {text} IS NULL THEN NULL WHEN {broken(frame)} THEN '{e.NOT_JSON.code}'"
        f" WHEN {ambiguous} THEN '{e.AMBIGUOUS.code}' END"
    )


def _is_alone(text: str) -> str:
    """BOOLEAN: the text is one JSON value, of whatever types its fields are. VARIANT too passes over what comes after a
    value, and not over what stands within the frame."""
    whole = f"try_parse_json(concat('{_OPEN}', {text}, '{_CLOSE}'))"
    one = "variant_get(whole_, '$.end', 'string') IS NOT NULL AND try_variant_get(whole_, '$.values[1]') IS NULL"
    return sql.let("whole_", whole, f"coalesce({one}, false)")


def ambiguous(text: str) -> str:
    """BOOLEAN: some object in the text has a field twice, or some text half a character.

    VARIANT takes neither. To make one takes as long as to decode a row does its from_json: for short and rare texts.
    """
    return f"try_parse_json({text}) IS NULL"


def has_half_characters(text: str) -> str:
    """BOOLEAN. JsonConverter escapes next to nothing, so that one look at the bytes settles it for most."""
    return f"(contains({text}, '\\\\u') AND {text} RLIKE '\\\\\\\\u[dD][89a-fA-F]' AND {ambiguous(text)})"


def has_names_twice(names: str, usual: str | None) -> str:
    """BOOLEAN, of a JSON list of names. A list that equals the `usual` one is not looked at."""
    listed = f"from_json({names}, 'ARRAY<STRING>')"
    differs = "true" if usual is None else f"{names} <> {sql.text(usual)}"
    return f"(startswith({names}, '[') AND {differs} AND size(array_distinct({listed})) < size({listed}))"


def fault_of(text: str) -> str:
    """The same as fault() of a text that nothing is read from."""
    return sql.let("frame_", _framed(text, ""), fault(text, "frame_", ambiguous(text)))
