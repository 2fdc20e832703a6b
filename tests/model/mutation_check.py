"""Breaks the rules on purpose, and finds which tests fail.

python -m tests.model.mutation_check [--histories 400] [NAME ...]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.model.mutations import Mutation, mutated
from tests.model.rule_mutations import MUTATIONS

ROOT = Path(__file__).parents[2]
HISTORIES = 1200
_TIMEOUT_S = 1800


def noticed(mutation: Mutation, histories: int = HISTORIES) -> str:
    """The first tests that fail with a fault: `unit tests`, `cases`, `columns` or `gate`; empty if none does."""
    with tempfile.TemporaryDirectory() as folder:
        service = mutated(mutation, Path(folder))
        paths = os.pathsep.join((str(service), str(ROOT)))
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        test = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-o", "pythonpath="]
        unit = [*test, "tests/unit/rules"]
        cases = [*test, "tests/model/test_gate.py", "-k", "once_failed"]
        whole = [*test, "tests/model/test_column_batch.py", "tests/model/test_keyless.py"]
        gate = ["-m", "tests.model.gate", "--histories", str(histories), "--failures", "1"]
        for name, command in (("unit tests", unit), ("cases", cases), ("columns", whole), ("gate", gate)):
            done = subprocess.run(
                [sys.executable, *command],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            if done.returncode == 1 and b"fail" in done.stdout:
                return name
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Breaks the rules on purpose, and finds which tests fail.")
    parser.add_argument("--histories", type=int, default=HISTORIES, help="of each flavour")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if not options.names or mutation.name in options.names]
    missed = 0
    for mutation in chosen:
        by = noticed(mutation, options.histories)
        missed += not by
        sys.stdout.write(f"{by or 'NOT NOTICED':12} {mutation.rule:4} {mutation.name}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - missed} of {len(chosen)} faults noticed\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
