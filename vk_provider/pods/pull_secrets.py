"""Logins for registries out of ``imagePullSecrets``, matched to images as the kubelet matches them.

A pull secret that is absent or unreadable never stops a pod: the pull may work without.
Fed by :mod:`.resolve` and by providers (:func:`credential_for`, :func:`pull_notes`).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from vk_provider.pods.reading import mapping, mappings, strings, text
from vk_provider.pods.references import SECRET, ObjectKey
from vk_provider.pods.types import (
    FieldNote,
    Json,
    ReferenceEvent,
    RegistryCredential,
    ResolvedPod,
)

REASON = "FailedToRetrieveImagePullSecret"

DOCKER_HUB = "docker.io"
_DOCKER_HUB_NAMES = (
    "docker.io",
    "index.docker.io",
    "registry-1.docker.io",
    "registry.hub.docker.com",
)


@dataclass(frozen=True, slots=True)
class PullCredentials:
    """The logins that fit at least one image of the pod, the most specific first."""

    credentials: tuple[RegistryCredential, ...] = ()
    events: tuple[ReferenceEvent, ...] = ()


def pull_credentials(
    pod: Json, objects: Mapping[ObjectKey, Json | None], images: Sequence[str]
) -> PullCredentials:
    """The logins in the pod's pull secrets for ``images``, and an Event per unusable secret."""
    namespace = text(mapping(pod, "metadata"), "namespace")
    found: list[RegistryCredential] = []
    events: list[ReferenceEvent] = []
    for _, reference in mappings(mapping(pod, "spec"), "imagePullSecrets"):
        name = text(reference, "name")
        try:
            found += _logins(objects.get(ObjectKey(SECRET, namespace, name)))
        except _UnusableError as error:
            message = f"Unable to use the image pull secret {name}: {error}; "
            events.append(ReferenceEvent(REASON, f"{message}the pull may fail without it"))
    fitting = [each for each in found if any(matches(each.registry, image) for image in images)]
    # Reverse order puts a path of a registry before the registry, and a host before a glob.
    fitting.sort(key=lambda each: each.registry, reverse=True)
    return PullCredentials(tuple(dict.fromkeys(fitting)), tuple(events))


def credential_for(
    image: str, credentials: Sequence[RegistryCredential]
) -> RegistryCredential | None:
    """The login to pull ``image`` with: the first that fits."""
    return next((each for each in credentials if matches(each.registry, image)), None)


def pull_notes(pod: ResolvedPod) -> Iterator[FieldNote]:
    """A note if the pod names pull secrets and its first container's image is in none of them."""
    wanted = mappings(mapping(pod.pod, "spec"), "imagePullSecrets")
    if wanted and credential_for(pod.containers[0].image, pod.pull_credentials) is None:
        why = "none of them has a login for the image's registry"
        yield FieldNote("spec.imagePullSecrets", why)


def matches(registry: str, image: str) -> bool:
    """Does a login for ``registry`` (host, port, path; globs within the host) fit ``image``?"""
    host, _, path = registry.partition("/")
    image_host, image_path = split_image(image)
    rest = image_path.removeprefix(path)
    # After the path the image may go on with a further part, a tag or a digest.
    path_fits = not path or (rest != image_path and rest[:1] in ("", "/", ":", "@"))
    return path_fits and _host_matches(host, image_host)


def split_image(image: str) -> tuple[str, str]:
    """An image name's registry host and its path there, as ``docker pull`` reads it."""
    host, slash, path = image.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        return DOCKER_HUB, image if slash else f"library/{image}"
    return _canonical(host), path


def registry_of(key: str) -> str:
    """A key of a Docker configuration as host, port and path: no scheme, no API version."""
    bare = key.partition("://")[2] or key
    host, _, path = bare.partition("/")
    for version in ("v1", "v2"):
        if path == version or path.startswith(f"{version}/"):
            path = path[3:]
    path = path.strip("/")
    host = _canonical(host)
    return f"{host}/{path}" if path else host


class _UnusableError(Exception):
    """Why a pull secret gives no login; shown in an Event, so it quotes nothing."""


def _logins(secret: Json | None) -> Iterator[RegistryCredential]:
    if secret is None:
        raise _UnusableError("not found")
    # Read in full before the first login is used: half of a broken secret is worse than none.
    logins = [_login(key, entry) for key, entry in _auths(secret).items() if key]
    if not any(logins):
        raise _UnusableError("no entry has a user name and a password")
    return iter([login for login in logins if login is not None])


def _auths(secret: Json) -> Mapping[str, object]:
    plain, encoded = strings(secret, "stringData"), strings(secret, "data")
    for key, wrapped in ((".dockerconfigjson", True), (".dockercfg", False)):
        if key not in plain and key not in encoded:
            continue
        try:
            raw = plain[key] if key in plain else base64.b64decode(encoded[key], validate=True)
            document = json.loads(raw)
        except (binascii.Error, ValueError, RecursionError) as error:
            raise _UnusableError(f"{key} is not JSON in base64") from error
        if not isinstance(document, dict):
            raise _UnusableError(f"{key} is no JSON object")
        return mapping(document, "auths") if wrapped else document
    raise _UnusableError("it has neither .dockerconfigjson nor .dockercfg")


def _login(key: str, entry: object) -> RegistryCredential | None:
    if not isinstance(entry, Mapping):
        return None
    username, password = text(entry, "username"), text(entry, "password")
    if auth := text(entry, "auth"):
        # As with a kubelet, `auth` wins over the two it was made of.
        username, password = _decoded(auth)
    if not username or not password:
        return None
    return RegistryCredential(registry_of(key), username, password)


def _decoded(auth: str) -> tuple[str, str]:
    try:
        # Both alphabets and absent padding occur in the wild.
        standard = auth.strip().replace("-", "+").replace("_", "/").rstrip("=")
        plain = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True).decode()
    except ValueError as error:
        raise _UnusableError("an auth field is not base64 of user:password") from error
    username, _, password = plain.partition(":")
    # Docker pads `auth` with NULs.
    return username, password.rstrip("\0")


def _canonical(host: str) -> str:
    host = host.lower()
    return DOCKER_HUB if host in _DOCKER_HUB_NAMES else host


def _host_matches(pattern: str, host: str) -> bool:
    """Part for part, so that ``*.example.com`` fits ``a.example.com`` only."""
    name, _, port = pattern.partition(":")
    image_name, _, image_port = host.partition(":")
    parts, image_parts = name.split("."), image_name.split(".")
    return (
        port == image_port
        and len(parts) == len(image_parts)
        and all(map(fnmatchcase, image_parts, parts))
    )
