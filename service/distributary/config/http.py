"""Where the service listens, and who may see its pages."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator

from distributary.config.problem import Problem
from distributary.config.scalars import Flag, Section, Text, WholeNumber
from distributary.config.source import secret_from_outside

SHORTEST_TOKEN = 16
"""Characters of the token that the pages ask for."""


class Http(Section):
    """The address of the status page, the probes (/livez, /readyz) and the metrics (/metrics)."""

    enabled: Flag = Field(True, description="Whether the service listens.")
    host: Text = Field("127.0.0.1", description="Address to listen on; 0.0.0.0: all addresses of the machine.")
    port: WholeNumber = Field(8080, ge=0, le=65535, description="Port to listen on; 0: any free one.")
    names: tuple[Text, ...] = Field(
        (),
        description="Further host names under which browsers, Prometheus or a proxy request the pages. `host`, "
        "localhost and IP addresses are always accepted, other names are refused. *: all names.",
    )
    token: SecretStr | None = Field(
        None,
        description="If set, all pages except /livez and /readyz require it, as a bearer token or as the password of "
        "any user. Write it as ${env:NAME} or ${file:PATH}.",
    )

    _not_inline = field_validator("token", mode="before")(secret_from_outside)

    @field_validator("token")
    @classmethod
    def _token_is_long(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and len(token.get_secret_value()) < SHORTEST_TOKEN:
            message = f"has fewer than {SHORTEST_TOKEN} characters, so that it can be guessed"
            raise Problem("bad-value", message, "take a random text, such as `openssl rand -hex 32` makes").error()
        return token
