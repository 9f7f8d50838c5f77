"""The Go virtual-kubelet with its client limits lifted, built from the published module.

As released it sends five requests a second, which measures a constant. The module is unpacked into
the cache and the one line that makes the client gets a line before it; nothing of it is kept here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from tests.rig import toolchain
from tests.rig.builds import BuildError
from tests.rig.cache import build_lock, cache_folder
from tests.rig.progress import say
from tests.rig.recipes import recipe_of

_RECIPE = recipe_of("virtual-kubelet")
_CLIENT = Path("node/nodeutil/client.go")
_MADE_BY = "\treturn kubernetes.NewForConfig(config)"
_LIFTED = "\tconfig.QPS, config.Burst = 2000, 4000\n" + _MADE_BY


def lifted_binary() -> Path:
    """Return the path of the program, building it first if the cache lacks it."""
    go = toolchain.find()
    target = cache_folder() / "bin" / f"{_RECIPE.key(go.version)}-lifted" / "virtual-kubelet"
    if not target.exists():
        with build_lock():
            if not target.exists():
                _build(go.ready(), target)
    return target


def _build(go: Path, target: Path) -> None:
    wanted = f"{_RECIPE.module}@v{_RECIPE.version}"
    say(f"building {wanted} with its client limits lifted (once; minutes on a cold machine)")
    work = cache_folder() / "src" / target.parent.name
    shutil.rmtree(work, ignore_errors=True)
    work.parent.mkdir(parents=True, exist_ok=True)
    unpacked = json.loads(_run([go, "mod", "download", "-json", wanted], work.parent))["Dir"]
    shutil.copytree(unpacked, work)
    _lift(work)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    package = "./cmd/virtual-kubelet"
    _run([go, "build", "-ldflags", _RECIPE.ldflags, "-o", partial, package], work)
    partial.rename(target)


def _lift(work: Path) -> None:
    # A module in Go's cache is read-only, and so is its copy.
    for path in (work, *work.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    source = (work / _CLIENT).read_text()
    if source.count(_MADE_BY) != 1:
        raise BuildError(f"{_RECIPE.version}: {_CLIENT} no longer makes its client where expected")
    (work / _CLIENT).write_text(source.replace(_MADE_BY, _LIFTED))


def _run(command: list[str | Path], work: Path) -> str:
    done = subprocess.run(
        command,
        cwd=work,
        env=toolchain.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).splitlines()[-20:])
        raise BuildError(f"`{' '.join(map(str, command))}` failed:\n{said}")
    return done.stdout
