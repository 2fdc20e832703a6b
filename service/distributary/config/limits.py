"""Limits of the source's records."""

from __future__ import annotations

from pydantic import Field

from distributary.config.scalars import Section, WholeNumber
from distributary.types.bounds import Bounds

_USUAL = Bounds()


class Limits(Section):
    """Limits of the source's records. A record beyond one goes to quarantine (`beyond-limits`, `bad-value`,
    `bad-schema`), before the work is done that it asks for; its table continues."""

    record_bytes: WholeNumber = Field(
        _USUAL.record_bytes,
        ge=1024,
        le=2**30,
        description="The most bytes of a key or a value, after AWS Glue's compression is undone. 128 MiB.",
    )
    decimal_bytes: WholeNumber = Field(
        _USUAL.decimal_bytes,
        ge=16,
        le=2**20,
        description="The most bytes of a decimal's unscaled number, where the column is text; DECIMAL itself has 16 at "
        "most. The default holds the 147,455 digits of PostgreSQL's numeric.",
    )
    decimal_scale: WholeNumber = Field(
        _USUAL.decimal_scale,
        ge=38,
        le=1_000_000,
        description="The most digits behind the point of a decimal that becomes text, or zeros in front of it.",
    )
    text_bytes: WholeNumber = Field(
        _USUAL.text_bytes,
        ge=1024,
        le=2**30,
        description="Decimals of a few bytes may become long texts. The most bytes of such texts for one column "
        "of a record; all its columns together may have eight times as many. 64 MiB.",
    )
    nesting: WholeNumber = Field(
        _USUAL.nesting,
        ge=8,
        le=128,
        description="The most levels of nested types in a schema, and of nested objects and arrays in a JSON value.",
    )
    columns: WholeNumber = Field(
        _USUAL.columns,
        ge=10,
        le=100_000,
        description="The most fields of one row or one nested type; the columns of a table are bounded by it, too.",
    )
    schemas: WholeNumber = Field(
        _USUAL.schemas,
        ge=1,
        le=10_000,
        description="The most new schemas in one batch of a table, and the most times that its records without a "
        "schema may bring new fields. Where several of Spark's tasks decode a large batch, the limit holds for the "
        "part of each task.",
    )

    def bounds(self) -> Bounds:
        """The limits as the decoder needs them."""
        return Bounds(**self.model_dump())
