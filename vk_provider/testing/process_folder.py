"""The folder of one container: what stands in for a root file system.

The process starts in it (or in ``workingDir`` below it), and HOME and TMPDIR point into it, so that
relative paths stay in the container. Absolute paths are the machine's: nothing is isolated.
Fed by a :class:`.process_plan.ContainerPlan`; feeds :mod:`.process_instance`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vk_provider.testing.process_plan import ContainerPlan


def lay_out(plan: ContainerPlan, root: Path, volumes: Path) -> None:
    """Make a container's folder: the shared folders, the files, the places it expects."""
    root.mkdir(parents=True)
    for path, folder in sorted(plan.folders.items()):
        shared, place = volumes / folder, root / path[1:]
        shared.mkdir(parents=True, exist_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(shared, target_is_directory=True)
    for file in plan.files:
        place = root / file.path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.content)
        # Whoever runs it must be able to read it: some modes are meant for root alone.
        place.chmod(file.mode | 0o400)
    for place in (root / plan.working_dir[1:], root / "tmp"):
        place.mkdir(parents=True, exist_ok=True)


def environment(plan: ContainerPlan, root: Path, ports: Mapping[int, int]) -> dict[str, str]:
    """A container's variables: its own, and where its folder and its mapped ports are.

    PORT is the first port's, PORT_8080 that of ``containerPort: 8080``; the pod's own values win.
    """
    mapped = {port: str(ports[port]) for port in plan.ports if port in ports}
    env = {"HOME": str(root), "TMPDIR": f"{root}/tmp"}
    env |= {"PORT": next(iter(mapped.values()))} if mapped else {}
    env |= {f"PORT_{port}": free for port, free in mapped.items()}
    env |= {"TERM": "xterm"} if plan.tty else {}
    return env | dict(plan.env)
