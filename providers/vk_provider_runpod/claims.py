"""Which network volume a claim of the home cluster stands for.

Pure. The claim's PersistentVolume says it, as with any driver: ``csi.driver`` is ours and
``volumeHandle`` the volume's id; or an annotation on it, or on the claim, names the volume.
Fed by ``creating`` with the two objects as the home cluster has them.
"""

from __future__ import annotations

from vk_provider.pods.reading import mapping, strings, text
from vk_provider.pods.types import Json
from vk_provider_runpod.volumes import NETWORK_VOLUME_ANNOTATION

DRIVER = "runpod.vk-provider.dev"


def volume_of(claim: Json, volume: Json) -> str | None:
    """The network volume's id, None where neither of the two names one."""
    csi = mapping(mapping(volume, "spec"), "csi")
    handle = text(csi, "volumeHandle") if text(csi, "driver") == DRIVER else ""
    return handle.strip() or _noted(volume) or _noted(claim) or None


def why_not(name: str, claim: Json, volume: Json) -> str:
    """Why a claim stands for no network volume, and what would make it stand for one."""
    if not claim:
        return f'the home cluster has no claim "{name}"'
    if not volume:
        return f'claim "{name}" is bound to no PersistentVolume yet'
    return (
        f'claim "{name}" is of this cluster: its PersistentVolume has neither csi.driver {DRIVER} '
        f"with the network volume's id as volumeHandle, nor the annotation "
        f"{NETWORK_VOLUME_ANNOTATION}"
    )


def _noted(found: Json) -> str:
    return (
        strings(mapping(found, "metadata"), "annotations")
        .get(NETWORK_VOLUME_ANNOTATION, "")
        .strip()
    )
