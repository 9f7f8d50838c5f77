"""A container's files where a backend can't mount any: a start wrapper writes them. Pure.

The wrapper is a shell script of the provider's that finds its work list in a variable, writes the
files and becomes the container's real command, which must be given therefore. It is opt-in: it
needs a shell in the image, and what is written once does not change.
Fed by the volumes of :mod:`.mounts`; feeds a translation's problems, notes and work list.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

from vk_provider.faults import FieldProblem
from vk_provider.pods.file_owners import file_owners
from vk_provider.pods.mounts import FILE_KINDS, FOLDER, Mount
from vk_provider.pods.reading import mapping, strings
from vk_provider.pods.types import FieldNote, ResolvedContainer, ResolvedPod

FILES_ENV = "VK_PROVIDER_FILES"
MOST_FILES_BYTES = 32 * 1024


def is_wanted(pod: ResolvedPod, annotation: str, usually: bool) -> bool:
    """What the pod's annotation says; without it, what the configuration does."""
    value = strings(mapping(pod.pod, "metadata"), "annotations").get(annotation)
    return usually if value is None else value == "true"


def is_needed(container: ResolvedContainer, mounts: Sequence[Mount]) -> bool:
    """Whether there are files or folders to be made, and a command to go on with."""
    has_work = any(each.kind in (*FILE_KINDS, FOLDER) for each in mounts)
    return has_work and container.command is not None


def file_problems(
    service: str,
    annotation: str,
    container: ResolvedContainer,
    mounts: Sequence[Mount],
    wanted: bool,
) -> Iterator[FieldProblem]:
    """Why the files can't come along, with the way in which they could."""
    paths = dict.fromkeys(each.path for each in mounts if each.kind in FILE_KINDS)
    if not paths:
        return
    if not wanted:
        way = f'annotation {annotation}: "true" lets a start wrapper write them (needs command)'
        why = f"{service} can't mount files; {way}, or pass them as env"
        yield from (FieldProblem(path, why) for path in paths)
        return
    if container.command is None:
        why = "must be given: the files' start wrapper can't know the image's own entrypoint"
        yield FieldProblem(f"{container.field_path}.command", why)
    size = sum(len(file.content) for file in container.files)
    if size > MOST_FILES_BYTES:
        why = f"found {size} bytes of files in all, allowed: {MOST_FILES_BYTES}"
        yield from (FieldProblem(path, why) for path in paths)


def file_notes(mount: Mount) -> Iterator[FieldNote]:
    """What is otherwise with files that the wrapper wrote; nothing for another kind of volume."""
    if mount.kind in FILE_KINDS:
        yield FieldNote(mount.path, "written once at the start; later changes don't arrive")
        for path in file_owners(mount.volume[mount.kind], mount.path):
            yield FieldNote(path, "the files belong to the container's own user")


def file_lines(container: ResolvedContainer) -> list[str]:
    """The work list's lines for files: mode, path and content, the latter two in base64, so that
    neither needs quoting."""
    return [
        f"{file.mode:o} {encoded(file.path.encode())} {encoded(file.content)}"
        for file in container.files
    ]


def shown_lines(container: ResolvedContainer) -> list[str]:
    """The same as a person may see them: of what is in a file only the size."""
    return [f"{f.mode:o} {f.path} ({len(f.content)} bytes)" for f in container.files]


def encoded(content: bytes) -> str:
    """A word without spaces, for a line."""
    return base64.b64encode(content).decode()
