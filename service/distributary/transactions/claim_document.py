"""The claim of complete transactions as the JSON document in which it outlives the process."""

from __future__ import annotations

from typing import Any

from distributary.consume.kafka_client import Topic
from distributary.logs import get_logger
from distributary.transactions.frontier import Claim, Transaction

_log = get_logger(__name__)


def claim_document(claim: Claim, topic_id: str) -> dict[str, Any]:
    """The document; `topic_id` is the transaction topic's."""
    of = claim.transaction
    return {
        "topic_id": topic_id,
        "next": of.next,
        "complete": {"id": of.id, "ts_ms": of.ts_ms},
        "held": {topic: {str(p): n for p, n in ends.items()} for topic, ends in claim.offsets.items()},
        "versions": dict(claim.versions),
        "exact": claim.exact,
    }


def read_claim(noted: Any, topic: Topic) -> Claim | None:
    """The claim of this transaction topic in a document; None if there is no usable one."""
    try:
        if noted is None or noted["topic_id"] != topic.topic_id:
            return None
        complete = noted["complete"]
        offsets = {str(t): {int(p): int(n) for p, n in ends.items()} for t, ends in noted["held"].items()}
        versions = {str(t): int(n) for t, n in noted.get("versions", {}).items()}
        transaction = Transaction(str(complete["id"]), complete["ts_ms"], int(noted["next"]))
        return Claim(transaction, offsets, versions, noted.get("exact") is True)
    except (AttributeError, KeyError, TypeError, ValueError):
        _log.warning(
            "the file with the last complete transaction can't be read: the topic is read from its beginning",
            code="transactions-note-unreadable",
            topic=topic.name,
        )
        return None
