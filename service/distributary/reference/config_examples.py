"""Examples for docs/config.md, by the heading of their section: a sentence, and what to write. Tests load each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXAMPLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "source": (
            "A connector whose settings are not the defaults. [Source settings](sources.md) says which matter.",
            """\
source:
  topic_prefix: server1
  connector: postgresql
  signal_table: public.debezium_signal
  connector_properties:
    decimal.handling.mode: string
    skipped.operations: none
""",
        ),
        "source.schema_registry": (
            "[Read Avro](avro.md) has more.",
            """\
source:
  topic_prefix: server1
  format: avro
  schema_registry:
    url: https://registry.example.com
    basic.auth.user.info: ${env:REGISTRY_USER}    # user:password
""",
        ),
        "target": (
            "Tables in an object store, one folder per database. [Object stores](object-stores.md) has the rest.",
            """\
target:
  path: s3a://lake/cdc
  table: "{database}/{schema}/{table}"
""",
        ),
        "tables, and defaults": (
            "The first entry that matches a table counts: write special cases first. See [modes.md](modes.md).",
            """\
defaults:
  schema_changes: evolve
tables:
  - match: dbo.customers
    mask: {email: redact}
    exclude: [ssn]
  - match: dbo.prices
    mode: history
  - match: dbo.clicks              # no primary key
    mode: append
  - match: dbo.orders
    deletes: soft
    columns: {created: timestamp}
    cluster_by: [customer_id]
  - match: "dbo.*"                 # all others
""",
        ),
        "maintenance, of a table or of defaults": (
            "[Keep files few](maintenance.md) explains it.",
            """\
defaults:
  maintenance: {compact_after: 50, keep: 30d}
""",
        ),
        "quarantine": (
            "A table halts if more than 5 % of its last records were rejected. See [quarantine.md](quarantine.md).",
            """\
quarantine:
  path: /data/quarantine
  max_ratio: 0.05
""",
        ),
        "trigger": (
            "Fewer, larger batches: less work per record, later rows.",
            """\
trigger:
  interval: 1m
  max_records: 1000000
""",
        ),
        "http": (
            "A page that other hosts reach. It has no login: see [monitoring.md](monitoring.md).",
            """\
http:
  host: 0.0.0.0
  port: 8080
""",
        ),
        "consumer_group": (
            "For a second service that reads the same topics.",
            """\
consumer_group:
  name: distributary-server1-archive
""",
        ),
        "masking": (
            "Needed if a column is hashed. See [masking.md](masking.md).",
            """\
masking:
  salt: ${file:/run/secrets/masking-salt}
""",
        ),
    }
)
