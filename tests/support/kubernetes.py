"""Kubernetes objects for the tests."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import kubernetes_validate
import yaml

Manifest = dict[str, Any]


def faults(manifest: Manifest, version: str) -> str | None:
    """The faults by Kubernetes' own schema of this version, unknown fields included; None if there are none."""
    try:
        kubernetes_validate.validate(manifest, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    return None


def named(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    """The objects of a kind by their names."""
    return {one["metadata"]["name"]: one for one in manifests if one["kind"] == kind}


def only(manifests: list[Manifest], kind: str, ends: str = "") -> Manifest:
    """The only object of a kind whose name has that end."""
    [found] = [one for name, one in named(manifests, kind).items() if name.endswith(ends)]
    return found


def pods(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The pod templates: of the driver, of executors that have pods of their own, and of each job by its name."""
    found: dict[str, Manifest] = {}
    for one in manifests:
        if one["kind"] == "Deployment":
            found["driver"] = one["spec"]["template"]
        if one["kind"] == "CronJob":
            found[one["metadata"]["name"]] = one["spec"]["jobTemplate"]["spec"]["template"]
        if one["kind"] == "SparkApplication":
            found |= {role: one["spec"][role]["template"] for role in ("driver", "executor")}
        if one["kind"] == "ConfigMap" and one["metadata"]["name"].endswith("-executor"):
            found["executor"] = parsed(one["data"]["template.yaml"])
    return found


def parsed(text: str) -> Manifest:
    """One object."""
    manifest: Manifest = yaml.safe_load(text)
    return manifest


def mount_config_map(directory: Path, files: dict[str, str]) -> None:
    """Writes the files as the kubelet does: the files are links into a hidden directory, which is itself a link."""
    (directory / "..2026_01_01").mkdir(parents=True)
    (directory / "..data").symlink_to("..2026_01_01")
    for name, text in files.items():
        (directory / "..2026_01_01" / name).write_text(text)
        (directory / name).symlink_to(f"..data/{name}")


def volume_at(pod: Manifest, container: Manifest, path: str) -> Manifest:
    """The volume that is mounted at `path`, or at the nearest directory that it lies in."""
    mounts = {PurePosixPath(mount["mountPath"]): mount["name"] for mount in container["volumeMounts"]}
    place = next(place for place in (PurePosixPath(path), *PurePosixPath(path).parents) if place in mounts)
    [volume] = [volume for volume in pod["volumes"] if volume["name"] == mounts[place]]
    found: Manifest = volume
    return found
