"""Root file systems of container images, made of programs and the libraries they are linked to.

Fed by `images` with programs; feeds `archive` with folders.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.rig.real_node import busybox

_FOLDERS = (
    "bin", "dev", "etc", "home", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin", "usr/sbin",
    "var/log", "var/run",
)  # fmt: skip
_PASSWD = """\
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/bin/false
nobody:x:65534:65534:nobody:/home:/bin/false
"""
_GROUP = "root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n"


class Root:
    """One root file system being made."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.folder = folder

    def add_busybox(self, program: Path) -> None:
        """A shell, the usual commands, users and groups."""
        for name in _FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "tmp").chmod(0o1777)
        self.put(program, "bin/busybox")
        for name in busybox.applets(program):
            if name != "busybox":
                (self.folder / "bin" / name).symlink_to("busybox")
        (self.folder / "usr/bin/env").symlink_to("/bin/env")
        self.write("etc/passwd", _PASSWD)
        self.write("etc/group", _GROUP)
        self.write("etc/nsswitch.conf", "hosts: files dns\n")

    def put(self, file: Path, where: str, *, mode: int = 0o755) -> None:
        """A file, in place of what may be there."""
        target = self.folder / where
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(file.resolve(), target)
        target.chmod(mode)

    def put_linked(self, program: Path, where: str, libraries: Sequence[Path] = ()) -> None:
        """A program and every library it needs; `libraries` are folders to look in first."""
        self.put(program, where)
        for found in _libraries(program, libraries):
            is_loader = found.name.startswith("ld-linux")
            self.put(
                found, str(Path("lib64" if is_loader else "lib/x86_64-linux-gnu") / found.name)
            )

    def write(self, where: str, text: str) -> None:
        """A text file."""
        target = self.folder / where
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def append(self, where: str, text: str) -> None:
        """More of a text file."""
        with (self.folder / where).open("a") as file:
            file.write(text)


def _libraries(program: Path, folders: Sequence[Path]) -> list[Path]:
    answer = subprocess.run(
        ["ldd", program],
        env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": ":".join(map(str, folders))},
        capture_output=True,
        text=True,
        check=True,
    )
    return [Path(found) for found in re.findall(r"(/\S+\.so\S*)", answer.stdout)]
