"""Who may talk to Spark: its ports speak a protocol that trusts whoever reaches them."""

from __future__ import annotations

from collections.abc import Mapping

from distributary.errors import SetupError

LOOPBACK = "127.0.0.1"


def is_local(master: str) -> bool:
    """Whether the driver does all work itself."""
    return master == "local" or master.startswith("local[")


def network_settings(master: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Spark's properties for its ports, given all other `settings`, which take precedence.

    In local mode the driver listens on loopback alone, and other users of the machine still need a secret, which Spark
    makes. With executors all of them need a secret, and the data that they send and spill is encrypted: it has rows,
    and properties with passwords. Kubernetes and YARN distribute such a secret; for a standalone cluster the config
    must have one. Raises SetupError if it is missing.
    """
    if not master:  # no master is set
        return {}
    if is_local(master):
        return {
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.authenticate": "true",
        }
    wanted = settings.get("spark.authenticate", "true").lower() == "true"
    if wanted and master.startswith("spark://") and not settings.get("spark.authenticate.secret"):
        raise SetupError(
            "spark-without-secret",
            f"the cluster {master} has no secret, so that whoever reaches its ports could read rows and passwords",
            "set spark.authenticate.secret to ${env:NAME} or ${file:PATH} under `spark`, and spark.authenticate: true"
            " with the same secret in spark-defaults.conf of the master and the workers; in a network that nobody else"
            " reaches, spark.authenticate: false",
        )
    encrypted = "true" if wanted else "false"
    return {
        "spark.authenticate": encrypted,
        "spark.network.crypto.enabled": encrypted,
        "spark.io.encryption.enabled": encrypted,
    }
