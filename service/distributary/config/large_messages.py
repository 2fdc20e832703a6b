"""Where large values are that the connector stores outside of its records."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from distributary.config.problem import Problem, refuse
from distributary.config.scalars import Section, Text, WholeNumber, without_credentials
from distributary.config.source import secret_from_outside


def _endpoint(url: str) -> str:
    return without_credentials(url, ("http://", "https://"), "write access_key_id and secret_access_key beside it")


class LargeMessages(Section):
    """The store of Debezium's `S3LargeMessagePostProcessor`: with this section the values that it took out of the
    records are fetched. Without it such records go to quarantine."""

    buckets: tuple[Text, ...] = Field(
        min_length=1,
        description="The buckets that records may refer to (large.message.s3.bucket.name). A reference to another one "
        "goes to quarantine, because whoever writes to the source could make the service read it.",
    )
    region: Text | None = Field(
        None, description="The buckets' region (large.message.s3.region.name). Default: that of the environment."
    )
    endpoint: Annotated[Text, AfterValidator(_endpoint)] | None = Field(
        None, description="The URL of a store other than AWS (large.message.s3.endpoint). Default: AWS."
    )
    access_key_id: Text | None = Field(
        None,
        description="The access key's id. Default: the credentials that AWS's own clients find on the driver and on "
        "Spark's executors (environment, profile, role).",
    )
    secret_access_key: SecretStr | None = Field(None, description="The access key, as ${env:NAME} or ${file:PATH}.")
    max_bytes: WholeNumber = Field(
        64 * 2**20,
        ge=2**20,
        le=2**30,
        description="The most bytes of one value; a record with a larger one goes to quarantine. A batch has at most "
        "twice as many bytes of such values. 64 MiB.",
    )

    _not_inline = field_validator("secret_access_key", mode="before")(secret_from_outside)

    @model_validator(mode="after")
    def _key_has_two_parts(self) -> LargeMessages:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            missing = "secret_access_key" if self.secret_access_key is None else "access_key_id"
            fix = f"add {missing}: ${{env:NAME}}, or leave both out"
            refuse([Problem("missing-key", "access_key_id and secret_access_key go together", fix, (missing,))])
        return self
