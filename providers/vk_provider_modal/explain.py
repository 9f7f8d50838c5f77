"""The request as a person may see it: every value that came out of a Secret is masked.

Pure. Fed by ``provider.explain``; feeds ``vk-provider explain``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vk_provider.pods.pull_secrets import credential_for
from vk_provider.pods.reading import mapping, mappings, text
from vk_provider.pods.types import Explanation, FieldNote, Offer, ResolvedContainer, ResolvedPod
from vk_provider_modal.config import ModalConfig
from vk_provider_modal.translate import translate
from vk_provider_modal.volumes import FILES_ENV, files_shown

_MASK = "***"
_SHORTEST_SECRET = 6


def explain(pod: ResolvedPod, offer: Offer, config: ModalConfig) -> Explanation:
    """The masked request and all notes. Raises ``UnsupportedFieldsError`` with every field."""
    found = translate(pod, offer, config)
    return Explanation(_masked(found.request, pod), (*found.notes, *_pull_notes(pod)))


def _pull_notes(pod: ResolvedPod) -> Iterator[FieldNote]:
    wanted = mappings(mapping(pod.pod, "spec"), "imagePullSecrets")
    if wanted and credential_for(pod.containers[0].image, pod.pull_credentials) is None:
        path = "spec.imagePullSecrets"
        yield FieldNote(path, "none of them has a login for the image's registry")


def _masked(request: Mapping[str, Any], pod: ResolvedPod) -> Mapping[str, Any]:
    hidden = _secret_names(pod.containers[0])
    env: Mapping[str, str] = request["env"]
    secrets = [*pod.secret_values, *(env[name] for name in hidden if name in env)]
    secrets = [each for each in secrets if len(each) >= _SHORTEST_SECRET]
    image = dict(request["image"])
    if "login" in image:
        image["login"] = {**image["login"], "password": _MASK}
    args = [_cut(word, secrets) for word in request.get("args", ())]
    files = {FILES_ENV: files_shown(pod)} if FILES_ENV in env else {}
    return {
        **request,
        "image": image,
        **({"args": args} if args else {}),
        "env": {
            **{name: _MASK if name in hidden else _cut(env[name], secrets) for name in env},
            **files,
        },
    }


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
        from_secret |= {name for name in container.env if name not in entries}
    return from_secret | {FILES_ENV}
