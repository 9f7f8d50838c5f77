"""A pod's volumes in RunPod's terms: container disk, one network volume, files in env.

Pure. Fed by ``translate``; feeds the request's ``disk`` and ``mounts`` and the start wrapper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from vk_provider import quantities
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
    volumes,
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
from vk_provider.pods.types import FieldNote, ResolvedContainer, ResolvedPod
from vk_provider_runpod.config import RunPodConfig

FILES_ANNOTATION = "runpod.vk-provider.dev/files-wrapper"
NETWORK_VOLUME_ANNOTATION = "runpod.vk-provider.dev/network-volume"
CLAIMED = "(the one of the claim's PersistentVolume)"
"""In place of a volume's id that only the home cluster knows."""

_GB = Fraction(10**9)

SCRIPT = (
    'set -e; printf "%s\\n" "$VK_PROVIDER_FILES" | while read -r mode path content; do '
    '[ -n "$mode" ] || continue; target=$(printf %s "$path" | base64 -d); '
    'if [ "$mode" = dir ]; then mkdir -p "$target"; continue; fi; '
    'mkdir -p "$(dirname "$target")"; printf %s "$content" | base64 -d > "$target"; '
    'chmod "$mode" "$target"; done; unset VK_PROVIDER_FILES; exec "$@"'
)
"""Writes the files, then becomes the real command; needs sh, base64 and mkdir in the image."""


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
    mounted = list(mounts(pod, container))
    network, network_problems = _network(pod, config.network_volume_id or claimed, mounted)
    wanted = is_wanted(pod, FILES_ANNOTATION, config.files_wrapper)
    wrapped = wanted and is_needed(container, mounted)
    disk, disk_problems = _disk(pod, container, config)
    problems = (
        *unmountable(pod, "RunPod", "a network volume"),
        *_memory(mounted),
        *file_problems("RunPod", FILES_ANNOTATION, container, mounted, wanted),
        *network_problems,
        *disk_problems,
    )
    notes = (*_notes(mounted, wrapped), *_claim_notes(mounted, network))
    return Storage(disk, network, wrapped, problems, notes)


def claim_of(pod: ResolvedPod) -> tuple[str, str]:
    """The one claim that is mounted: its field path and its name."""
    claim = next(m for m in mounts(pod, pod.containers[0]) if m.kind == CLAIM)
    return claim.path, text(mapping(claim.volume, CLAIM), "claimName")


def files_value(pod: ResolvedPod) -> str:
    """The wrapper's work list: one line per file, then one per folder."""
    folders = (text(m.mount, "mountPath") for m in _folders(pod))
    made = [f"dir {encoded(folder.encode())}" for folder in folders]
    return "\n".join([*file_lines(pod.containers[0]), *made])


def files_shown(pod: ResolvedPod) -> str:
    """The work list as a person may see it."""
    made = [f"dir {m.folder}" for m in _folders(pod)]
    return "\n".join([*shown_lines(pod.containers[0]), *made])


def _folders(pod: ResolvedPod) -> Iterator[Mount]:
    return (m for m in mounts(pod, pod.containers[0]) if m.kind == FOLDER)


def _memory(mounted: list[Mount]) -> Iterator[FieldProblem]:
    for m in mounted:
        # Every container has shared memory, which is what nearly all of them are meant to be.
        if m.medium and m.folder != SHARED_MEMORY:
            allowed = f"RunPod has only the container disk, and {SHARED_MEMORY}"
            yield FieldProblem(f"{m.path}.medium", f'found "{m.medium}"; {allowed}')


def _network(
    pod: ResolvedPod, mapped: str | None, mounted: list[Mount]
) -> tuple[Mapping[str, object], list[FieldProblem]]:
    given = strings(mapping(pod.pod, "metadata"), "annotations").get(NETWORK_VOLUME_ANNOTATION, "")
    volume_id, _, path = given.partition(":")
    claims = [m for m in mounted if m.kind == CLAIM]
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
                why = "RunPod mounts a network volume as a whole"
                yield FieldProblem(f"{claim.mount_path}.{key}", why)


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
    for index, volume, _ in volumes(pod):
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


def _notes(mounted: list[Mount], wrapped: bool) -> Iterator[FieldNote]:
    for m in mounted:
        if m.kind == FOLDER:
            yield FieldNote(m.path, _folder_note(m, wrapped))
            yield from folder_notes(m, "instance")
            if mapping(m.volume, FOLDER).get("mode") is not None:
                yield FieldNote(f"{m.path}.mode", "has no effect: the folder's mode is the image's")
        yield from mount_notes(m)
        if wrapped:
            yield from file_notes(m)
        claim = mapping(m.volume, CLAIM)
        if claim and (m.mount.get("readOnly") or claim.get("readOnly")):
            yield FieldNote(m.path, "RunPod mounts network volumes for writing")


def _claim_notes(mounted: list[Mount], network: Mapping[str, object]) -> Iterator[FieldNote]:
    for m in mounted:
        if network and m.kind == CLAIM:
            claim = text(mapping(m.volume, CLAIM), "claimName")
            yield FieldNote(m.path, f'claim "{claim}" is a network volume there, not home\'s data')


def _folder_note(mount: Mount, wrapped: bool) -> str:
    if mount.folder == SHARED_MEMORY:
        return f"is the container's own {SHARED_MEMORY}, of RunPod's size"
    made = "made by the start wrapper" if wrapped else "only there if the image has it"
    return f"lies on the container disk; its folder {mount.folder} is {made}"
