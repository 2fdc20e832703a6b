"""The entry point for spark-submit; the same as the `distributary` command.

    spark-submit --jars JARS --py-files distributary-VERSION-py3-none-any.whl main.py run -c config.yaml

Exit codes are those of the command. docs/spark-cluster.md says what to give for JARS.
"""

from __future__ import annotations

from distributary.cli import main

if __name__ == "__main__":
    main()
