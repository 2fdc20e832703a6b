"""Whether a table's positions are made of the same fields as before: others can't be compared with them."""

from __future__ import annotations

from distributary.decode.order_fields import Order
from distributary.errors import TableHalt


def check_order(known: tuple[tuple[str, str], ...] | None, now: Order) -> None:
    """Raises TableHalt if a table was filled by another order; `known` is None if its connector needs none."""
    if (known or ()) != tuple(map(tuple, now)):
        raise TableHalt(
            "order-changed",
            f"the table's changes were ordered by {_as_text(known or ())}, and would be by {_as_text(now)} now",
            "set source.order back; or `distributary resume -c FILE TABLE --rebuild` fills the table again",
        )


def _as_text(order: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(name for name, _ in order) or "rules of the connector's own"
