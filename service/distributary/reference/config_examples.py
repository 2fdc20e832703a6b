"""Examples for docs/config.md, by the heading of their section: a sentence, and what to write. Tests load each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXAMPLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "source": (
            "Other connector settings than Debezium's defaults. [Source settings](sources.md) lists those that matter.",
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
        "large_messages": (
            "Values that the connector stored in a bucket. [Special records](special-records.md) has the rest.",
            """\
large_messages:
  buckets: [cdc-large-values]
  region: eu-central-1
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
            "The first entry that matches a table applies, so put special cases first. See [modes.md](modes.md).",
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
            "Here a table halts if over 5 % of its last records were rejected. See [quarantine.md](quarantine.md).",
            """\
quarantine:
  path: /data/quarantine
  max_ratio: 0.05
""",
        ),
        "trigger": (
            "Fewer and larger batches cost less per record, and changes appear later.",
            """\
trigger:
  interval: 1m
  max_records: 1000000
""",
        ),
        "http": (
            "A status page for other hosts. Protect it with `token`, see [monitoring.md](monitoring.md#access).",
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
