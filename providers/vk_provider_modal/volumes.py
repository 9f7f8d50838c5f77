"""A pod's volumes in Modal's terms: Modal Volumes for claims, files through a start wrapper.

Pure. Fed by ``translate``; feeds the request's ``volumes`` and the wrapper's work list.
"""

from __future__ import annotations

import base64
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.pods.file_owners import file_owners
from vk_provider.pods.reading import mapping, mappings, strings, text
from vk_provider.pods.references import is_token_volume
from vk_provider.pods.types import FieldNote, Json, ResolvedContainer, ResolvedPod
from vk_provider_modal.config import ModalConfig

FILES_ANNOTATION = "modal.vk-provider.dev/files-wrapper"
VOLUMES_ANNOTATION = "modal.vk-provider.dev/volumes"
FILES_ENV = "VK_PROVIDER_FILES"
MOST_FILES_BYTES = 32 * 1024
NEVER_MOUNTED = ("/", "/root", "/tmp")

_FILES = ("configMap", "secret", "downwardAPI", "projected")
_CLAIM = "persistentVolumeClaim"
_MOUNT_NOTED = {
    "bindMountOptions": "has no effect: nothing of a host is mounted",
    "mountPropagation": "has no effect: nothing is mounted beneath it",
    "recursiveReadOnly": "has no effect: nothing is mounted beneath it",
}
_FOLDER_NOTED = {
    "readOnly": "not enforced: the folder stays writable",
    "subPath": "has no effect: the folder is the sandbox's own",
    "subPathExpr": "has no effect: the folder is the sandbox's own",
}

SCRIPT = (
    'set -e; printf "%s\\n" "$VK_PROVIDER_FILES" | while IFS=" " read -r mode name content; do '
    '[ -n "$mode" ] || continue; path=$(printf %s "$name" | base64 -d); '
    'case $mode in folder) mkdir -p "$path";; *) mkdir -p "${path%/*}/"; '
    'printf %s "$content" | base64 -d > "$path"; chmod "$mode" "$path";; esac; done; '
    'unset VK_PROVIDER_FILES; exec "$@"'
)
"""Writes the files, then becomes the real command; needs sh, base64 and mkdir in the image."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One volume of the pod as its container mounts it."""

    index: int
    volume: Json
    kind: str
    mount: Json
    mount_path: str
    """The field path of the mount, not its folder."""

    @property
    def path(self) -> str:
        """The field path of the volume's source."""
        return f"spec.volumes[{self.index}].{self.kind}"

    @property
    def folder(self) -> str:
        """Where the container sees it, without needless slashes and dots."""
        return posixpath.normpath(text(self.mount, "mountPath"))


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
    mounts = list(_mounts(pod, container))
    names = {**config.volumes, **_annotated(pod)}
    wanted = _wants_wrapper(pod, config)
    wrapped = wanted and container.command is not None and _has_files_or_folders(mounts)
    problems = (
        *_refused(pod),
        *_annotation_problems(pod),
        *_file_problems(container, mounts, wanted),
        *_claim_problems(mounts, names),
    )
    volumes = {m.folder: _volume(m, names) for m in mounts if m.kind == _CLAIM}
    return Storage(volumes, wrapped, problems, tuple(_notes(mounts, wrapped)))


def files_value(pod: ResolvedPod) -> str:
    """The wrapper's work list: one line per file (mode, path, content) and per folder."""
    container = pod.containers[0]
    folders = [m.folder for m in _mounts(pod, container) if m.kind == "emptyDir"]
    lines = [f"folder {_encoded(folder.encode())}" for folder in folders]
    lines += [
        f"{file.mode:o} {_encoded(file.path.encode())} {_encoded(file.content)}"
        for file in container.files
    ]
    return "\n".join(lines)


def files_shown(pod: ResolvedPod) -> str:
    """The work list as a person may see it: of what is in a file only the size."""
    container = pod.containers[0]
    lines = [f"folder {m.folder}" for m in _mounts(pod, container) if m.kind == "emptyDir"]
    lines += [f"{f.mode:o} {f.path} ({len(f.content)} bytes)" for f in container.files]
    return "\n".join(lines)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _wants_wrapper(pod: ResolvedPod, config: ModalConfig) -> bool:
    value = _annotations(pod).get(FILES_ANNOTATION)
    return config.files_wrapper if value is None else value == "true"


def _has_files_or_folders(mounts: list[Mount]) -> bool:
    return any(m.kind in (*_FILES, "emptyDir") for m in mounts)


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


def _volumes(pod: ResolvedPod) -> Iterator[tuple[int, Json, str]]:
    for index, volume in mappings(mapping(pod.pod, "spec"), "volumes"):
        if not is_token_volume(volume):
            # A volume without a source is an emptyDir, as the API server reads it.
            kinds = [key for key in volume if key != "name" and volume[key] is not None]
            yield index, volume, kinds[0] if kinds else "emptyDir"


def _mounts(pod: ResolvedPod, container: ResolvedContainer) -> Iterator[Mount]:
    volumes = {text(volume, "name"): (i, volume, kind) for i, volume, kind in _volumes(pod)}
    for index, mount in mappings(container.spec, "volumeMounts"):
        found = volumes.get(text(mount, "name"))
        if found is not None:
            yield Mount(*found, mount, f"{container.field_path}.volumeMounts[{index}]")


def _refused(pod: ResolvedPod) -> Iterator[FieldProblem]:
    for index, _, kind in _volumes(pod):
        if kind not in (*_FILES, "emptyDir", _CLAIM):
            allowed = f"emptyDir, {_CLAIM} (as a Modal Volume)"
            yield FieldProblem(
                f"spec.volumes[{index}].{kind}", f"Modal can't mount it; allowed: {allowed}"
            )


def _file_problems(
    container: ResolvedContainer, mounts: list[Mount], wanted: bool
) -> Iterator[FieldProblem]:
    paths = dict.fromkeys(m.path for m in mounts if m.kind in _FILES)
    if not paths:
        return
    size = sum(len(file.content) for file in container.files)
    if not wanted:
        way = f'annotation {FILES_ANNOTATION}: "true" lets a start wrapper write them'
        why = f"Modal can't mount files; {way} (needs command), or pass them as env"
        yield from (FieldProblem(path, why) for path in paths)
    elif size > MOST_FILES_BYTES:
        why = f"found {size} bytes of files in all, allowed: {MOST_FILES_BYTES}"
        yield from (FieldProblem(path, why) for path in paths)
    if wanted and container.command is None:
        why = "must be given: the files' start wrapper can't know the image's own entrypoint"
        yield FieldProblem(f"{container.field_path}.command", why)


def _claim_problems(mounts: list[Mount], names: Mapping[str, str]) -> Iterator[FieldProblem]:
    taken: dict[str, Mount] = {}
    for m in mounts:
        if m.kind != _CLAIM:
            continue
        claim = text(mapping(m.volume, _CLAIM), "claimName")
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
    claim = mapping(mount.volume, _CLAIM)
    read_only = bool(mount.mount.get("readOnly") or claim.get("readOnly"))
    sub_path = text(mount.mount, "subPath")
    return {
        "volume": names.get(text(claim, "claimName"), ""),
        **({"readOnly": True} if read_only else {}),
        **({"subPath": sub_path} if sub_path else {}),
    }


def _notes(mounts: list[Mount], wrapped: bool) -> Iterator[FieldNote]:
    for m in mounts:
        if m.kind == "emptyDir":
            in_memory = bool(text(mapping(m.volume, "emptyDir"), "medium"))
            yield FieldNote(m.path, _folder_note(m.folder, wrapped, in_memory))
            yield from _mount_notes(m, _FOLDER_NOTED)
        if m.kind in _FILES and wrapped:
            yield FieldNote(m.path, "written once at the start; later changes don't arrive")
            for path in file_owners(m.volume[m.kind], m.path):
                yield FieldNote(path, "the files belong to the container's own user")
        yield from _mount_notes(m, _MOUNT_NOTED)


def _mount_notes(mount: Mount, noted: Mapping[str, str]) -> Iterator[FieldNote]:
    for key, why in noted.items():
        if mount.mount.get(key) not in (None, False, "", "None", "Disabled"):
            yield FieldNote(f"{mount.mount_path}.{key}", why)


def _folder_note(folder: str, wrapped: bool, in_memory: bool) -> str:
    if folder == "/dev/shm":  # shared memory, which every sandbox has
        return "is the sandbox's own /dev/shm, of Modal's size"
    made = "made by the start wrapper" if wrapped else "only there if the image has it"
    place = "on the sandbox's disk, not in memory" if in_memory else "on the sandbox's disk"
    return f"lies {place}; its folder {folder} is {made}"
