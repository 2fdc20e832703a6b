"""The number of processors that the service uses: those that it is granted."""

from __future__ import annotations

from pathlib import Path

import pytest

from distributary.errors import UsageError
from distributary.launch.cores import bounded_master, granted_cores

GIB = 1 << 30


def system(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 64),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n", "proc/self/cgroup": "0::/\n"}, 64),
        ({"sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1),
        ({"sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"sys/fs/cgroup/cpu.max": "250000 100000\n"}, 3),
        ({"sys/fs/cgroup/a.slice/cpu.max": "200000 100000\n", "proc/self/cgroup": "0::/a.slice/b.service\n"}, 2),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 64),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "50000\n"}, 3),
        (
            {
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "100000\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
                "proc/self/cgroup": "4:cpu,cpuacct:/a/b\n1:name=systemd:/a\n",
            },
            1,
        ),
        ({"sys/fs/cgroup/cpu.max": "\n"}, 64),
    ],
)
def test_the_quota_of_a_control_group_counts(tmp_path: Path, files: dict[str, str], cores: int) -> None:
    assert granted_cores({}, system(tmp_path, **files), seen=64) == cores


def test_the_environment_says_what_no_limit_does(tmp_path: Path) -> None:
    assert granted_cores({"DISTRIBUTARY_CORES": "1"}, tmp_path, seen=64) == 1
    assert granted_cores({"DISTRIBUTARY_CORES": ""}, tmp_path, seen=64) == 64
    assert granted_cores({"DISTRIBUTARY_CORES": "128"}, tmp_path, seen=64) == 64
    for text in ("0", "-1", "half", "1.5"):
        with pytest.raises(UsageError, match="DISTRIBUTARY_CORES"):
            granted_cores({"DISTRIBUTARY_CORES": text}, tmp_path, seen=64)


@pytest.mark.parametrize(
    ("master", "cores", "heap", "bounded"),
    [
        ("local[*]", 1, 4 * GIB, "local[1]"),
        ("local[*]", 2, 4 * GIB, "local[2]"),
        ("local[*]", 64, 4 * GIB, "local[8]"),
        ("local[*]", 64, 2 * GIB, "local[4]"),
        ("local[*, 3]", 64, 2 * GIB, "local[4, 3]"),
        ("local[*]", 64, GIB // 4, "local[1]"),
        ("local[16]", 64, 2 * GIB, "local[16]"),
        ("local", 64, 2 * GIB, "local"),
        ("spark://host:7077", 64, 2 * GIB, "spark://host:7077"),
    ],
)
def test_tasks_are_bounded_by_cores_and_heap_where_nobody_counts_them(
    master: str, cores: int, heap: int, bounded: str
) -> None:
    assert bounded_master(master, cores, heap) == bounded
