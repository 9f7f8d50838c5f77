"""Programs out of Debian packages, unpacked into the cache: nothing is installed on the machine.

Fed by apt's own sources and keys; feeds `prometheus.py`.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.rig.builds import BuildError
from tests.rig.cache import build_lock, cache_folder
from tests.rig.progress import Progress, say


def program(package: str, name: str) -> Path:
    """Return the path of a program of a Debian package; one on PATH is taken as it is."""
    if found := shutil.which(name):
        return Path(found)
    target = cache_folder() / "bin" / f"{package}-deb"
    path = target / "usr" / "bin" / name
    if not path.exists():
        with build_lock(f"{package}-deb"):
            if not path.exists():  # another process may have unpacked it while we waited
                _unpack(package, target)
    if not path.exists():
        raise BuildError(f"the Debian package {package} holds no program {name}")
    return path


def _unpack(package: str, target: Path) -> None:
    say(f"downloading the Debian package {package} (once)")
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "lists" / "partial").mkdir(parents=True)
    # Lists and archives of our own: the system's may be empty, old, or not ours to write.
    apt = ["apt-get", "-qq", "-o", f"Dir::State::Lists={partial / 'lists'}"]
    apt += ["-o", f"Dir::Cache={partial / 'cache'}", "-o", "APT::Sandbox::User="]
    _run([*apt, "update"], partial, package)
    _run([*apt, "download", package], partial, package)
    archive = next(partial.glob(f"{package}_*.deb"))
    _run(["dpkg-deb", "-x", archive.name, "root"], partial, package)
    shutil.rmtree(target, ignore_errors=True)
    (partial / "root").rename(target)
    shutil.rmtree(partial)


def _run(command: Sequence[str], folder: Path, package: str) -> None:
    progress = Progress(f"{command[0]} for {package}")
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise BuildError(_advice(package, f"no {command[0]} here")) from error
    progress.done()
    if done.returncode != 0:
        raise BuildError(_advice(package, f"`{' '.join(command)}` said:\n{done.stderr[-2000:]}"))


def _advice(package: str, said: str) -> str:
    return f"{said}\nInstall {package} by hand, so that its programs are on PATH, and try again."
