"""Builds the Go program in `peer/`, once for each content of it: the peer node and the clients.

Fed by the sources beside this file; its path feeds `nodes` and `clients`.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from tests.rig import toolchain
from tests.rig.builds import BuildError
from tests.rig.cache import build_lock, cache_folder
from tests.rig.progress import say

_SOURCE = Path(__file__).parent / "peer"
_NAME = "streams-peer"


def go_program() -> Path:
    """Return the path of the program, building it first if the cache lacks it."""
    go = toolchain.find()
    target = cache_folder() / "bin" / f"{_NAME}-{_key(go.version)}" / _NAME
    if not target.exists():
        with build_lock():
            if not target.exists():
                _build(go.ready(), target)
    return target


def _key(go_version: str) -> str:
    content = hashlib.sha256(go_version.encode())
    for file in sorted(_SOURCE.iterdir()):
        content.update(f"\n{file.name}\n".encode() + file.read_bytes())
    return content.hexdigest()[:12]


def _build(go: Path, target: Path) -> None:
    say("building the peer's streaming server (once; a minute on a cold machine)")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    # go.sum is committed: nothing may change the versions that are compared with.
    flags = toolchain.FLAGS.replace("-mod=mod", "-mod=readonly")
    done = subprocess.run(
        [go, "build", "-ldflags", "-s -w", "-o", partial, "."],
        cwd=_SOURCE,
        env=toolchain.environment() | {"GOFLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError("the peer did not build:\n" + "\n".join(done.stderr.splitlines()[-20:]))
    partial.rename(target)
