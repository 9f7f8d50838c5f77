"""A pod's volumes in RunPod's terms: container disk, one network volume, files in env.

Pure. Fed by ``translate``; feeds the request's ``disk`` and ``mounts`` and the start wrapper.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from vk_provider import quantities
from vk_provider.faults import FieldProblem
from vk_provider.pods.file_owners import file_owners
from vk_provider.pods.reading import mapping, mappings, strings, text
from vk_provider.pods.references import is_token_volume
from vk_provider.pods.types import FieldNote, Json, ResolvedContainer, ResolvedPod
from vk_provider_runpod.config import RunPodConfig

FILES_ANNOTATION = "runpod.vk-provider.dev/files-wrapper"
NETWORK_VOLUME_ANNOTATION = "runpod.vk-provider.dev/network-volume"
CLAIMED = "(the one of the claim's PersistentVolume)"
"""In place of a volume's id that only the home cluster knows."""
FILES_ENV = "VK_PROVIDER_FILES"
MAX_FILES_BYTES = 32 * 1024
SHARED_MEMORY = "/dev/shm"

_FILE_KINDS = ("configMap", "secret", "downwardAPI", "projected")
_GB = Fraction(10**9)
_MOUNT_NOTED = {
    "bindMountOptions": "has no effect: nothing of a host is mounted",
    "mountPropagation": "has no effect: nothing is mounted beneath it",
    "recursiveReadOnly": "has no effect: nothing is mounted beneath it",
}
_FOLDER_NOTED = {
    "readOnly": "not enforced: the folder stays writable",
    "subPath": "has no effect: the folder is the instance's own",
    "subPathExpr": "has no effect: the folder is the instance's own",
}

SCRIPT = (
    'set -e; printf "%s\\n" "$VK_PROVIDER_FILES" | while read -r mode path content; do '
    '[ -n "$mode" ] || continue; target=$(printf %s "$path" | base64 -d); '
    'if [ "$mode" = dir ]; then mkdir -p "$target"; continue; fi; '
    'mkdir -p "$(dirname "$target")"; printf %s "$content" | base64 -d > "$target"; '
    'chmod "$mode" "$target"; done; unset VK_PROVIDER_FILES; exec "$@"'
)
"""Writes the files, then becomes the real command; needs sh, base64 and mkdir in the image."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One volume of the pod as its container mounts it."""

    index: int
    volume: Json
    kind: str
    mount: Json
    mount_index: int

    @property
    def path(self) -> str:
        """The field path of the volume's source."""
        return f"spec.volumes[{self.index}].{self.kind}"

    @property
    def folder(self) -> str:
        """Where the container sees it."""
        return text(self.mount, "mountPath").rstrip("/")

    @property
    def is_in_memory(self) -> bool:
        """Whether it is to be a part of the memory."""
        return bool(text(mapping(self.volume, "emptyDir"), "medium"))


@dataclass(frozen=True, slots=True)
class Storage:
    """What the volumes come to. ``wrapped``: the container starts through the wrapper."""

    disk_gb: int
    mounts: Mapping[str, object]
    wrapped: bool
    problems: tuple[FieldProblem, ...]
    notes: tuple[FieldNote, ...]


def storage(pod: ResolvedPod, config: RunPodConfig, claimed: str | None = None) -> Storage:
    """Translate all volumes of the pod, or say what can't be. ``claimed``: the network volume that
    the pod's claim stands for at home, or :data:`CLAIMED`; None where nobody can know."""
    container = pod.containers[0]
    mounts = list(_mounts(pod, container))
    network, network_problems = _network(pod, config.network_volume_id or claimed, mounts)
    wants_wrapper = _flag(pod, config)
    wrapped = wants_wrapper and container.command is not None and _needs_wrapper(mounts)
    disk, disk_problems = _disk(pod, container, config)
    problems = (
        *_refused(pod),
        *_memory(mounts),
        *_files(container, mounts, wants_wrapper),
        *network_problems,
        *disk_problems,
    )
    notes = (*_notes(mounts, wrapped), *_claim_notes(mounts, network))
    return Storage(disk, network, wrapped, problems, notes)


def claim_of(pod: ResolvedPod) -> tuple[str, str]:
    """The one claim that is mounted: its field path and its name."""
    claims = (m for m in _mounts(pod, pod.containers[0]) if m.kind == "persistentVolumeClaim")
    claim = next(claims)
    return claim.path, text(mapping(claim.volume, claim.kind), "claimName")


def files_value(container: ResolvedContainer, pod: ResolvedPod) -> str:
    """The wrapper's work list: one line per file (mode, path, content) and per folder."""
    lines = [
        f"{file.mode:o} {_encoded(file.path.encode())} {_encoded(file.content)}"
        for file in container.files
    ]
    folders = [m for m in _mounts(pod, container) if m.kind == "emptyDir"]
    lines += [f"dir {_encoded(text(m.mount, 'mountPath').encode())}" for m in folders]
    return "\n".join(lines)


def files_shown(container: ResolvedContainer, pod: ResolvedPod) -> str:
    """The work list as a person may see it: of what is in a file only the size."""
    lines = [f"{f.mode:o} {f.path} ({len(f.content)} bytes)" for f in container.files]
    lines += [f"dir {m.folder}" for m in _mounts(pod, container) if m.kind == "emptyDir"]
    return "\n".join(lines)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _flag(pod: ResolvedPod, config: RunPodConfig) -> bool:
    value = strings(mapping(pod.pod, "metadata"), "annotations").get(FILES_ANNOTATION)
    return config.files_wrapper if value is None else value == "true"


def _needs_wrapper(mounts: list[Mount]) -> bool:
    return any(m.kind in (*_FILE_KINDS, "emptyDir") for m in mounts)


def _volumes(pod: ResolvedPod) -> Iterator[tuple[int, Json, str]]:
    for index, volume in mappings(mapping(pod.pod, "spec"), "volumes"):
        if not is_token_volume(volume):
            # A volume without a source is an emptyDir, as the API server reads it.
            kinds = [key for key in volume if key != "name" and volume[key] is not None]
            yield index, volume, kinds[0] if kinds else "emptyDir"


def _mounts(pod: ResolvedPod, container: ResolvedContainer) -> Iterator[Mount]:
    volumes = {text(volume, "name"): (i, volume, kind) for i, volume, kind in _volumes(pod)}
    for mount_index, mount in mappings(container.spec, "volumeMounts"):
        found = volumes.get(text(mount, "name"))
        if found is not None:
            yield Mount(found[0], found[1], found[2], mount, mount_index)


def _refused(pod: ResolvedPod) -> Iterator[FieldProblem]:
    for index, _, kind in _volumes(pod):
        if kind not in (*_FILE_KINDS, "emptyDir", "persistentVolumeClaim"):
            allowed = "emptyDir, persistentVolumeClaim (as a network volume)"
            yield FieldProblem(
                f"spec.volumes[{index}].{kind}", f"RunPod can't mount it; allowed: {allowed}"
            )


def _memory(mounts: list[Mount]) -> Iterator[FieldProblem]:
    for m in mounts:
        # Every container has shared memory, which is what nearly all of them are meant to be.
        if m.is_in_memory and m.folder != SHARED_MEMORY:
            medium = text(mapping(m.volume, "emptyDir"), "medium")
            allowed = f"RunPod has only the container disk, and {SHARED_MEMORY}"
            yield FieldProblem(f"{m.path}.medium", f'found "{medium}"; {allowed}')


def _files(
    container: ResolvedContainer, mounts: list[Mount], wants_wrapper: bool
) -> Iterator[FieldProblem]:
    paths = dict.fromkeys(m.path for m in mounts if m.kind in _FILE_KINDS)
    if not paths:
        return
    if not wants_wrapper:
        way = (
            f'annotation {FILES_ANNOTATION}: "true" lets a start wrapper write them (needs command)'
        )
        why = f"RunPod can't mount files; {way}, or pass them as env"
        yield from (FieldProblem(path, why) for path in paths)
    elif container.command is None:
        why = "must be given: the files' start wrapper can't know the image's own entrypoint"
        yield FieldProblem(f"{container.field_path}.command", why)
    size = sum(len(file.content) for file in container.files)
    if wants_wrapper and size > MAX_FILES_BYTES:
        why = f"found {size} bytes of files in all, allowed: {MAX_FILES_BYTES}"
        yield from (FieldProblem(path, why) for path in paths)


def _network(
    pod: ResolvedPod, mapped: str | None, mounts: list[Mount]
) -> tuple[Mapping[str, object], list[FieldProblem]]:
    given = strings(mapping(pod.pod, "metadata"), "annotations").get(NETWORK_VOLUME_ANNOTATION, "")
    volume_id, _, path = given.partition(":")
    claims = [m for m in mounts if m.kind == "persistentVolumeClaim"]
    problems = list(_claim_problems(claims, volume_id or mapped, path))
    if volume_id and not path and not claims:
        where = f"metadata.annotations[{NETWORK_VOLUME_ANNOTATION}]"
        problems.append(FieldProblem(where, f'found "{given}", allowed: VOLUME-ID:/MOUNT/PATH'))
    target = path or (text(claims[0].mount, "mountPath") if claims else "")
    volume_id = volume_id or (mapped or "" if claims else "")
    if problems or not target:
        return {}, problems
    return {"network": [{"volumeId": volume_id, "path": target}]}, problems


def _claim_problems(
    claims: list[Mount], volume_id: str | None, path: str
) -> Iterator[FieldProblem]:
    if claims and not volume_id:
        way = (
            f"annotation {NETWORK_VOLUME_ANNOTATION}, networkVolumeId in the configuration, or "
            "its PersistentVolume where the node runs"
        )
        yield FieldProblem(
            claims[0].path, f"a claim of this cluster is not at RunPod; {way} maps it"
        )
    most = 0 if path else 1
    for extra in claims[most:]:
        yield FieldProblem(extra.path, "RunPod mounts one network volume, once, per instance")
    for claim in claims[:most]:
        for key in ("subPath", "subPathExpr"):
            if claim.mount.get(key):
                where = f"spec.containers[0].volumeMounts[{claim.mount_index}].{key}"
                yield FieldProblem(where, "RunPod mounts a network volume as a whole")


def _disk(
    pod: ResolvedPod, container: ResolvedContainer, config: RunPodConfig
) -> tuple[int, list[FieldProblem]]:
    resources = mapping(container.spec, "resources")
    problems: list[FieldProblem] = []
    asked = Fraction(0)
    for place in ("requests", "limits"):
        amount = mapping(resources, place).get("ephemeral-storage")
        path = f"{container.field_path}.resources.{place}[ephemeral-storage]"
        asked = max(asked, _bytes(amount, path, problems))
    folders = Fraction(0)
    for index, volume, _ in _volumes(pod):
        folder = mapping(volume, "emptyDir")
        size = _bytes(
            folder.get("sizeLimit"), f"spec.volumes[{index}].emptyDir.sizeLimit", problems
        )
        folders += 0 if folder.get("medium") else size
    return config.container_disk_gb + math.ceil(max(asked, folders) / _GB), problems


def _bytes(amount: object, path: str, problems: list[FieldProblem]) -> Fraction:
    if amount is None:
        return Fraction(0)
    try:
        return quantities.parse(str(amount))
    except ValueError as error:
        problems.append(FieldProblem(path, str(error)))
        return Fraction(0)


def _notes(mounts: list[Mount], wrapped: bool) -> Iterator[FieldNote]:
    for m in mounts:
        if m.kind == "emptyDir":
            yield FieldNote(m.path, _folder_note(m, wrapped))
            yield from _mount_notes(m, _FOLDER_NOTED)
            if mapping(m.volume, "emptyDir").get("mode") is not None:
                yield FieldNote(f"{m.path}.mode", "has no effect: the folder's mode is the image's")
        yield from _mount_notes(m, _MOUNT_NOTED)
        if m.kind in _FILE_KINDS and wrapped:
            yield FieldNote(m.path, "written once at the start; later changes don't arrive")
            for path in file_owners(m.volume[m.kind], m.path):
                yield FieldNote(path, "the files belong to the container's own user")
        claim = mapping(m.volume, "persistentVolumeClaim")
        if claim and (m.mount.get("readOnly") or claim.get("readOnly")):
            yield FieldNote(m.path, "RunPod mounts network volumes for writing")


def _claim_notes(mounts: list[Mount], network: Mapping[str, object]) -> Iterator[FieldNote]:
    for m in mounts:
        if network and m.kind == "persistentVolumeClaim":
            claim = text(mapping(m.volume, m.kind), "claimName")
            yield FieldNote(m.path, f'claim "{claim}" is a network volume there, not home\'s data')


def _folder_note(mount: Mount, wrapped: bool) -> str:
    if mount.folder == SHARED_MEMORY:
        return f"is the container's own {SHARED_MEMORY}, of RunPod's size"
    made = "made by the start wrapper" if wrapped else "only there if the image has it"
    return f"lies on the container disk; its folder {mount.folder} is {made}"


def _mount_notes(mount: Mount, noted: Mapping[str, str]) -> Iterator[FieldNote]:
    for key, why in noted.items():
        if mount.mount.get(key) not in (None, False, "", "None", "Disabled"):
            path = f"spec.containers[0].volumeMounts[{mount.mount_index}].{key}"
            yield FieldNote(path, why)
