"""A pod's volumes in Modal's terms: Modal Volumes for claims, files through a start wrapper.

Pure. Fed by ``translate``; feeds the request's ``volumes`` and the wrapper's work list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.pods.mounts import (
    CLAIM,
    FOLDER,
    SHARED_MEMORY,
    Mount,
    folder_notes,
    mount_notes,
    mounts,
    unmountable,
)
from vk_provider.pods.reading import mapping, strings, text
from vk_provider.pods.start_wrapper import (
    encoded,
    file_lines,
    file_notes,
    file_problems,
    is_needed,
    is_wanted,
    shown_lines,
)
from vk_provider.pods.types import FieldNote, ResolvedPod
from vk_provider_modal.config import ModalConfig

FILES_ANNOTATION = "modal.vk-provider.dev/files-wrapper"
VOLUMES_ANNOTATION = "modal.vk-provider.dev/volumes"
NEVER_MOUNTED = ("/", "/root", "/tmp")

SCRIPT = (
    'set -e; printf "%s\\n" "$VK_PROVIDER_FILES" | while IFS=" " read -r mode name content; do '
    '[ -n "$mode" ] || continue; path=$(printf %s "$name" | base64 -d); '
    'case $mode in folder) mkdir -p "$path";; *) mkdir -p "${path%/*}/"; '
    'printf %s "$content" | base64 -d > "$path"; chmod "$mode" "$path";; esac; done; '
    'unset VK_PROVIDER_FILES; exec "$@"'
)
"""Writes the files, then becomes the real command; needs sh, base64 and mkdir in the image."""


@dataclass(frozen=True, slots=True)
class Storage:
    """What the volumes come to. ``wrapped``: the container starts through the wrapper."""

    volumes: Mapping[str, Mapping[str, Any]]
    wrapped: bool
    problems: tuple[FieldProblem, ...]
    notes: tuple[FieldNote, ...]


def storage(pod: ResolvedPod, config: ModalConfig) -> Storage:
    """Translate all volumes of the pod, or say what can't be."""
    container = pod.containers[0]
    mounted = list(mounts(pod, container))
    names = {**config.volumes, **_annotated(pod)}
    wanted = is_wanted(pod, FILES_ANNOTATION, config.files_wrapper)
    wrapped = wanted and is_needed(container, mounted)
    problems = (
        *unmountable(pod, "Modal", "a Modal Volume"),
        *_annotation_problems(pod),
        *file_problems("Modal", FILES_ANNOTATION, container, mounted, wanted),
        *_claim_problems(mounted, names),
    )
    volumes = {m.folder: _volume(m, names) for m in mounted if m.kind == CLAIM}
    return Storage(volumes, wrapped, problems, tuple(_notes(mounted, wrapped)))


def files_value(pod: ResolvedPod) -> str:
    """The wrapper's work list: one line per folder, then one per file."""
    folders = [f"folder {encoded(folder.encode())}" for folder in _folders(pod)]
    return "\n".join([*folders, *file_lines(pod.containers[0])])


def files_shown(pod: ResolvedPod) -> str:
    """The work list as a person may see it."""
    folders = [f"folder {folder}" for folder in _folders(pod)]
    return "\n".join([*folders, *shown_lines(pod.containers[0])])


def _folders(pod: ResolvedPod) -> Iterator[str]:
    return (m.folder for m in mounts(pod, pod.containers[0]) if m.kind == FOLDER)


def _annotations(pod: ResolvedPod) -> Mapping[str, str]:
    return strings(mapping(pod.pod, "metadata"), "annotations")


def _annotated(pod: ResolvedPod) -> dict[str, str]:
    """``claim=volume, other-claim=other-volume``."""
    words = _annotations(pod).get(VOLUMES_ANNOTATION, "").replace(",", " ").split()
    pairs = (word.partition("=") for word in words)
    return {claim: volume for claim, _, volume in pairs if claim and volume}


def _annotation_problems(pod: ResolvedPod) -> Iterator[FieldProblem]:
    words = _annotations(pod).get(VOLUMES_ANNOTATION, "").replace(",", " ").split()
    for word in words:
        claim, _, volume = word.partition("=")
        if not claim or not volume:
            path = f"metadata.annotations[{VOLUMES_ANNOTATION}]"
            yield FieldProblem(path, f'found "{word}", allowed: CLAIM=VOLUME, with commas between')


def _claim_problems(mounted: list[Mount], names: Mapping[str, str]) -> Iterator[FieldProblem]:
    taken: dict[str, Mount] = {}
    for m in mounted:
        if m.kind != CLAIM:
            continue
        claim = text(mapping(m.volume, CLAIM), "claimName")
        if claim not in names:
            way = f"annotation {VOLUMES_ANNOTATION} or volumes in the configuration"
            yield FieldProblem(m.path, f'claim "{claim}" is not at Modal; {way} maps it')
        if m.folder in NEVER_MOUNTED:
            found = f'found "{m.folder}", allowed: not {", ".join(NEVER_MOUNTED)}'
            yield FieldProblem(f"{m.mount_path}.mountPath", found)
        if m.mount.get("subPathExpr"):
            yield FieldProblem(f"{m.mount_path}.subPathExpr", "Modal knows subPath only")
        volume = names.get(claim, claim)
        if volume in taken:
            yield FieldProblem(m.mount_path, f'Modal mounts the Volume "{volume}" only once')
        taken[volume] = m


def _volume(mount: Mount, names: Mapping[str, str]) -> Mapping[str, Any]:
    claim = mapping(mount.volume, CLAIM)
    read_only = bool(mount.mount.get("readOnly") or claim.get("readOnly"))
    sub_path = text(mount.mount, "subPath")
    return {
        "volume": names.get(text(claim, "claimName"), ""),
        **({"readOnly": True} if read_only else {}),
        **({"subPath": sub_path} if sub_path else {}),
    }


def _notes(mounted: list[Mount], wrapped: bool) -> Iterator[FieldNote]:
    for m in mounted:
        if m.kind == FOLDER:
            yield FieldNote(m.path, _folder_note(m, wrapped))
            yield from folder_notes(m, "sandbox")
        if wrapped:
            yield from file_notes(m)
        yield from mount_notes(m)


def _folder_note(mount: Mount, wrapped: bool) -> str:
    if mount.folder == SHARED_MEMORY:  # which every sandbox has
        return f"is the sandbox's own {SHARED_MEMORY}, of Modal's size"
    made = "made by the start wrapper" if wrapped else "only there if the image has it"
    place = "on the sandbox's disk, not in memory" if mount.medium else "on the sandbox's disk"
    return f"lies {place}; its folder {mount.folder} is {made}"
