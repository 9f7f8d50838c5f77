"""Debian packages and sources into a folder; nothing is installed, the machine's lists stay.

Fed by apt's own sources and keys; feeds `busybox` and `images`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.rig.builds import BuildError
from tests.rig.progress import Progress


class Apt:
    """apt with lists and archives of its own, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        parts = folder / "sources.d"
        for made in (
            parts,
            folder / "lists" / "partial",
            folder / "cache" / "archives" / "partial",
        ):
            made.mkdir(parents=True, exist_ok=True)
        for origin in _origins():
            (parts / origin.name).write_text(origin.read_text())
            (parts / f"src-{origin.name}").write_text(_as_source(origin.read_text()))
        options = {
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": parts,
            "Dir::State::lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            "APT::Sandbox::User": "root",
        }
        settings = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        self._command = ["apt-get", "-qq", *settings]

    def update(self) -> None:
        """Fetch the lists."""
        run([*self._command, "update"], self.folder)

    def unpack(self, packages: Sequence[str]) -> Path:
        """Download packages and unpack them over each other; return the folder of the root."""
        run([*self._command, "download", *packages], self.folder)
        root = self.folder / "root"
        for archive in sorted(self.folder.glob("*.deb")):
            run(["dpkg-deb", "-x", archive, root], self.folder)
        return root

    def source(self, package: str) -> Path:
        """Download a source package; return its original tarball, before Debian's patches."""
        run([*self._command, "source", "--download-only", package], self.folder)
        found = sorted(self.folder.glob(f"{package}_*.orig.tar.*"))
        if not found:
            raise BuildError(f"the source package {package} has no original tarball")
        return found[0]


def run(command: Sequence[str | Path], folder: Path) -> None:
    """Run one step of a build; raise BuildError with what it said."""
    words = [str(word) for word in command]
    progress = Progress(f"{words[0]} in {folder.name}")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    progress.done()
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise BuildError(f"`{' '.join(words[:6])}` in {folder} failed:\n{said}")


def _origins() -> list[Path]:
    folder = Path("/etc/apt")
    found = [
        *(folder / "sources.list.d").glob("*.sources"),
        *(folder / "sources.list.d").glob("*.list"),
    ]
    if (folder / "sources.list").exists():
        found.append(folder / "sources.list")
    return [path for path in found if path.read_text().strip()]


def _as_source(text: str) -> str:
    """The same origin, asked for source packages."""
    lines = []
    for line in text.splitlines():
        if line.startswith("Types:"):
            line = "Types: deb-src"
        elif line.startswith("deb "):
            line = "deb-src " + line.removeprefix("deb ")
        lines.append(line)
    return "\n".join(lines) + "\n"
