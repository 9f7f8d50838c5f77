"""A static busybox from Debian's source, without Debian's patches and configuration.

Debian's own binaries can't play the suite's image: their `sh` drops variables such as `data-1`, and
their `wget -T` crashes. Fed by `apt`; feeds `images`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.rig.real_node.apt import Apt, run

PACKAGE = "busybox"
_SETTINGS = {
    "# CONFIG_STATIC is not set": "CONFIG_STATIC=y",
    "CONFIG_TC=y": "# CONFIG_TC is not set",
}
"""Static, and without `tc`, which newer kernel headers can't compile any more."""


def build(apt: Apt, work: Path) -> Path:
    """Compile it; return the program."""
    source = work / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    run(["tar", "xf", apt.source(PACKAGE), "-C", source, "--strip-components=1"], work)
    run(["make", "defconfig"], source)
    config = source / ".config"
    text = config.read_text()
    for found, wanted in _SETTINGS.items():
        text = text.replace(found, wanted)
    config.write_text(text)
    run(["make", f"-j{os.cpu_count() or 1}", "busybox"], source)
    return source / "busybox"


def applets(program: Path) -> list[str]:
    """The names that it answers to."""
    answer = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    return answer.stdout.split()
