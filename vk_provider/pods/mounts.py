"""The volumes of a pod as one of its containers mounts them, and what is asked of a mount in vain.

Pure. For a backend that mounts no volumes of the home cluster: an emptyDir is a folder of the
instance's own disk, files are written when the container starts (:mod:`.start_wrapper`).
Fed by a pod; feeds the problems and notes of translations.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vk_provider.faults import FieldProblem
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.references import is_token_volume
from vk_provider.pods.types import FieldNote, Json, ResolvedContainer, ResolvedPod

CLAIM = "persistentVolumeClaim"
FOLDER = "emptyDir"
FILE_KINDS = ("configMap", "secret", "downwardAPI", "projected")
SHARED_MEMORY = "/dev/shm"

_MOUNT_NOTED = {
    "bindMountOptions": "has no effect: nothing of a host is mounted",
    "mountPropagation": "has no effect: nothing is mounted beneath it",
    "recursiveReadOnly": "has no effect: nothing is mounted beneath it",
}
_FOLDER_NOTED = {
    "readOnly": "not enforced: the folder stays writable",
    "subPath": "has no effect: the folder is the {instance}'s own",
    "subPathExpr": "has no effect: the folder is the {instance}'s own",
}


@dataclass(frozen=True, slots=True)
class Mount:
    """One volume of the pod as its container mounts it. ``mount_path`` is the field path of the
    mount, not its folder."""

    index: int
    volume: Json
    kind: str
    mount: Json
    mount_path: str

    @property
    def path(self) -> str:
        """The field path of the volume's source."""
        return f"spec.volumes[{self.index}].{self.kind}"

    @property
    def folder(self) -> str:
        """Where the container sees it, without needless slashes and dots."""
        return posixpath.normpath(text(self.mount, "mountPath"))

    @property
    def medium(self) -> str:
        """Of an emptyDir: ``Memory``, or nothing for the disk."""
        return text(mapping(self.volume, FOLDER), "medium")


def volumes(pod: ResolvedPod) -> Iterator[tuple[int, Json, str]]:
    """Index, volume and kind of each, without the token that admission has put there."""
    for index, volume in mappings(mapping(pod.pod, "spec"), "volumes"):
        if not is_token_volume(volume):
            # A volume without a source is an emptyDir, as the API server reads it.
            kinds = [key for key in volume if key != "name" and volume[key] is not None]
            yield index, volume, kinds[0] if kinds else FOLDER


def mounts(pod: ResolvedPod, container: ResolvedContainer) -> Iterator[Mount]:
    """What the container mounts, in its order. A mount of nothing is the API server's to refuse."""
    known = {text(volume, "name"): (i, volume, kind) for i, volume, kind in volumes(pod)}
    for index, mount in mappings(container.spec, "volumeMounts"):
        found = known.get(text(mount, "name"))
        if found is not None:
            yield Mount(*found, mount, f"{container.field_path}.volumeMounts[{index}]")


def unmountable(pod: ResolvedPod, service: str, claim: str) -> Iterator[FieldProblem]:
    """A refusal for each volume that is no folder, no files and no claim, mounted or not.
    ``claim``: what a claim is at the service, with its article."""
    for index, _, kind in volumes(pod):
        if kind not in (*FILE_KINDS, FOLDER, CLAIM):
            why = f"{service} can't mount it; allowed: {FOLDER}, {CLAIM} (as {claim})"
            yield FieldProblem(f"spec.volumes[{index}].{kind}", why)


def mount_notes(mount: Mount) -> Iterator[FieldNote]:
    """What no mount can have where nothing of a host is mounted."""
    return _asked(mount, _MOUNT_NOTED)


def folder_notes(mount: Mount, instance: str) -> Iterator[FieldNote]:
    """What a folder can't have that is the ``instance``'s own (a word for one)."""
    return _asked(mount, {key: why.format(instance=instance) for key, why in _FOLDER_NOTED.items()})


def _asked(mount: Mount, noted: Mapping[str, str]) -> Iterator[FieldNote]:
    for key, why in noted.items():
        if mount.mount.get(key) not in (None, False, "", "None", "Disabled"):
            yield FieldNote(f"{mount.mount_path}.{key}", why)
