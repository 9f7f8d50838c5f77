"""Writes a root file system as an image that `ctr images import` takes (docker-archive, one layer).

Fed by `images`; feeds containerd.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Image:
    """What an image is called and how it starts."""

    names: tuple[str, ...]
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    user: str = ""


def write(image: Image, root: Path, target: Path) -> None:
    """Write one image; everything in it belongs to root."""
    layer = target.with_suffix(".layer")
    with tarfile.open(layer, "w") as archive:
        for entry in sorted(root.iterdir()):
            archive.add(entry, arcname=entry.name, filter=_owned_by_root)
    digest = _digest(layer)
    config = json.dumps(_config(image, digest)).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [
        {"Config": config_name, "RepoTags": [*image.names], "Layers": [f"{digest}/layer.tar"]}
    ]
    with tarfile.open(target, "w") as archive:
        for name, content in (
            ("manifest.json", json.dumps(manifest).encode()),
            (config_name, config),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        archive.add(layer, arcname=f"{digest}/layer.tar", filter=_owned_by_root)
    layer.unlink()


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = "root"
    return member


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _config(image: Image, layer_digest: str) -> dict[str, object]:
    return {
        "architecture": "amd64",
        "os": "linux",
        "created": "2020-01-01T00:00:00Z",
        "config": {
            "Env": [f"PATH={_PATH}"],
            "Entrypoint": [*image.entrypoint],
            "Cmd": [*image.command],
            "WorkingDir": "/",
            "User": image.user,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        "history": [{"created": "2020-01-01T00:00:00Z", "created_by": "test bed"}],
    }
