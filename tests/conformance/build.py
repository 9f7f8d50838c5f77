"""Builds the suite from `suite/` (its versions are pinned there) and keeps it in the bed's cache.

Fed by the Go files beside this module; feeds `run` with the path of a test binary.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.rig import toolchain
from tests.rig.builds import BuildError
from tests.rig.cache import build_lock, cache_folder
from tests.rig.deathsig import die_with_parent
from tests.rig.progress import Progress, say

SOURCE = Path(__file__).parent / "suite"
_WHAT = "building the conformance suite"


def suite_binary() -> Path:
    """Return the path of the suite's test binary, building it first if the cache lacks it."""
    go = toolchain.find()
    target = cache_folder() / "bin" / f"conformance-{_key(go.version)}" / "suite.test"
    if not target.exists():
        with build_lock():
            if not target.exists():  # another process may have built it while we waited
                _build(go.ready(), target)
    return target


def _key(go_version: str) -> str:
    digest = hashlib.sha256(f"{go_version} {toolchain.FLAGS}".encode())
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def _build(go: Path, target: Path) -> None:
    work = cache_folder() / "src" / target.parent.name
    shutil.copytree(SOURCE, work, dirs_exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    say(f"{_WHAT} (once; minutes on a cold machine)")
    log = work / f"go.{os.getpid()}.log"
    try:
        # The versions are those of go.sum: a build that would change them is an error.
        code = _run([go, "test", "-mod=readonly", "-c", "-o", partial, "."], work, log)
        if code != 0:
            tail = "\n".join(log.read_text().splitlines()[-20:])
            raise BuildError(f"{_WHAT} failed; go said:\n{tail}")
    finally:
        log.unlink(missing_ok=True)
    partial.rename(target)


def _run(command: list[str | Path], work: Path, log: Path) -> int:
    progress = Progress(_WHAT)
    with (
        log.open("w") as output,
        subprocess.Popen(
            command,
            cwd=work,
            env=toolchain.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent(),
        ) as process,
    ):
        while True:
            try:
                code = process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                progress.tick()
            except BaseException:
                process.kill()
                raise
            else:
                progress.done()
                return code
