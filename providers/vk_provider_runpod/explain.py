"""The create request as a person may see it: every value that came out of a Secret is masked.

Pure. Fed by ``provider.explain`` with a translation; feeds ``vk-provider explain``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vk_provider.doubts import unknown
from vk_provider.pods.masking import masked
from vk_provider.pods.names import GPU_TYPES
from vk_provider.pods.pull_secrets import credential_for, pull_notes
from vk_provider.pods.start_wrapper import FILES_ENV
from vk_provider.pods.types import Explanation, FieldNote, Offer, ResolvedPod
from vk_provider_runpod import names
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.translate import NOTHING_KNOWN, Known, translate
from vk_provider_runpod.volumes import files_shown

_ANY_GPU = "(the cheapest in stock of RunPod's catalogue)"


def explain(
    pod: ResolvedPod, offer: Offer, config: RunPodConfig, known: Known = NOTHING_KNOWN
) -> Explanation:
    """The masked body and all notes. Raises ``UnsupportedFieldsError`` with every field."""
    doubts = tuple(_doubts(pod)) if offer.gpu_type is None else ()
    if pod.gpu_count and offer.gpu_type is None and not (pod.hints.gpu_types or config.gpu_types):
        offer = replace(offer, gpu_type=_ANY_GPU)
    found = translate(pod, offer, config, replace(known, registry=_registry(pod)))
    body = dict(found.body)
    if FILES_ENV in body["env"]:
        body["env"] = {**body["env"], FILES_ENV: files_shown(pod)}
    return Explanation(masked(body, pod.secret_values), (*doubts, *found.notes, *pull_notes(pod)))


def _doubts(pod: ResolvedPod) -> Iterator[FieldNote]:
    """Where none of the types that the pod names is known; others may be another backend's."""
    wishes = pod.hints.gpu_types if pod.gpu_count else ()
    path, what = f"metadata.annotations[{GPU_TYPES}]", "GPU types of RunPod's catalogue"
    found = [unknown(path, wish, names.GPU_TYPES, what) for wish in wishes]
    if None not in found:
        yield from (FieldNote(doubt.path, doubt.message) for doubt in found if doubt is not None)


def _registry(pod: ResolvedPod) -> str | None:
    credential = (
        credential_for(pod.containers[0].image, pod.pull_credentials) if pod.containers else None
    )
    return f"(found or made for {credential.registry})" if credential else None
