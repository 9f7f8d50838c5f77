"""The create request as a person may see it: every value that came out of a Secret is masked.

Pure. Fed by ``provider.explain`` with a translation; feeds ``vk-provider explain``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from vk_provider.pods.pull_secrets import credential_for
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import Explanation, FieldNote, Offer, ResolvedContainer, ResolvedPod
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.stamp import PREFIX
from vk_provider_runpod.translate import NOTHING_KNOWN, Known, translate
from vk_provider_runpod.volumes import FILES_ENV, files_shown

_MASK = "***"
_SHORTEST_SECRET = 6
_ANY_GPU = "(the cheapest in stock of RunPod's catalogue)"


def explain(
    pod: ResolvedPod, offer: Offer, config: RunPodConfig, known: Known = NOTHING_KNOWN
) -> Explanation:
    """The masked body and all notes. Raises ``UnsupportedFieldsError`` with every field."""
    if pod.gpu_count and offer.gpu_type is None and not (pod.hints.gpu_types or config.gpu_types):
        offer = replace(offer, gpu_type=_ANY_GPU)
    found = translate(pod, offer, config, replace(known, registry=_registry(pod)))
    body = _masked(found.body, pod.containers[0])
    if FILES_ENV in body["env"]:
        files = files_shown(pod.containers[0], pod)
        body = {**body, "env": {**body["env"], FILES_ENV: files}}
    return Explanation(body, (*found.notes, *_pull_notes(pod)))


def _registry(pod: ResolvedPod) -> str | None:
    credential = (
        credential_for(pod.containers[0].image, pod.pull_credentials) if (pod.containers) else None
    )
    return f"(found or made for {credential.registry})" if credential else None


def _pull_notes(pod: ResolvedPod) -> Iterator[FieldNote]:
    wanted = mappings(mapping(pod.pod, "spec"), "imagePullSecrets")
    if wanted and credential_for(pod.containers[0].image, pod.pull_credentials) is None:
        path = "spec.imagePullSecrets"
        yield FieldNote(path, "none of them has a login for the image's registry")


def _masked(body: Mapping[str, Any], container: ResolvedContainer) -> Mapping[str, Any]:
    hidden = _secret_names(container)
    env: Mapping[str, str] = body["env"]
    secrets = [env[name] for name in hidden if len(env.get(name, "")) >= _SHORTEST_SECRET]
    shown = {name: _MASK if name in hidden else _cut(value, secrets) for name, value in env.items()}
    args = {"args": _cut(body["args"], secrets)} if "args" in body else {}
    return {**body, **args, "env": shown}


def _cut(value: str, secrets: list[str]) -> str:
    for secret in secrets:
        value = value.replace(secret, _MASK)
    return value


def _secret_names(container: ResolvedContainer) -> set[str]:
    """Variables whose value may come from a Secret, rather one too many than one too few."""
    entries = {text(entry, "name"): entry for _, entry in mappings(container.spec, "env")}
    from_secret = {
        name for name, e in entries.items() if mapping(mapping(e, "valueFrom"), "secretKeyRef")
    }
    imports = [source for _, source in mappings(container.spec, "envFrom")]
    if any(mapping(source, "secretRef") for source in imports):
        from_secret |= {n for n in container.env if n not in entries and not n.startswith(PREFIX)}
    return from_secret | {FILES_ENV}
