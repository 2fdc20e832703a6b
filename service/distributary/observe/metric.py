"""The description of one metric: its name, type, labels, unit and help text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Kind(str, Enum):
    """Prometheus' types of metrics."""

    GAUGE = "gauge"
    COUNTER = "counter"
    SUMMARY = "summary"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """`name` as it is exposed (a counter's without `_total`), `help` as one sentence."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ("table",)
    unit: str = ""
    buckets: tuple[float, ...] = ()

    def former(self, name: str) -> Metric:
        """The same metric under its former name, which it has for one release beside its own."""
        return replace(self, name=name, help=f"Former name of {self.name}; the next minor version removes it.")

    @property
    def series(self) -> tuple[str, ...]:
        """The names that queries use."""
        if self.kind is Kind.COUNTER:
            return (f"{self.name}_total",)
        if self.kind is Kind.GAUGE:
            return (self.name,)
        bucket = (f"{self.name}_bucket",) if self.kind is Kind.HISTOGRAM else ()
        return (*bucket, f"{self.name}_count", f"{self.name}_sum")
