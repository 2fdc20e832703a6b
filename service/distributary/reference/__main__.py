"""Writes the pages: `python -m distributary.reference [FOLDER]`, into docs and config of that folder or this one."""

from __future__ import annotations

import sys
from pathlib import Path

from distributary.reference.pages import PAGES

if __name__ == "__main__":
    root = Path(*sys.argv[1:])
    for name, made in PAGES.items():
        (root / name).write_text(made(), encoding="utf-8")
