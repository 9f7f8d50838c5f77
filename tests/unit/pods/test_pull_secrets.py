"""Logins for registries, out of imagePullSecrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from vk_provider.pods.pull_secrets import (
    PullCredentials,
    credential_for,
    matches,
    pull_credentials,
    pull_notes,
    registry_of,
    split_image,
)
from vk_provider.pods.references import SECRET, ObjectKey
from vk_provider.pods.types import Json, RegistryCredential
from vk_provider.testing.builders import make_pod, make_resolved_pod

IMAGE = "registry.example/team/app:1"


def encode(text: str) -> str:
    """Base64."""
    return base64.b64encode(text.encode()).decode()


def config(**auths: Any) -> dict[str, Any]:
    """A pull secret as the API server has it."""
    document = {"auths": {key.replace("_", "/"): entry for key, entry in auths.items()}}
    return {"data": {".dockerconfigjson": encode(json.dumps(document))}}


def found(*secrets: Mapping[str, Any], image: str = IMAGE) -> PullCredentials:
    """The logins out of these secrets for one image."""
    names = [f"s{index}" for index, _ in enumerate(secrets)]
    pod = make_pod(imagePullSecrets=[{"name": name} for name in names])
    objects: dict[ObjectKey, Json | None] = {
        ObjectKey(SECRET, "default", name): secret
        for name, secret in zip(names, secrets, strict=True)
    }
    return pull_credentials(pod, objects, [image])


def logins(*secrets: Mapping[str, Any], image: str = IMAGE) -> list[tuple[str, str, str]]:
    """The same as plain tuples."""
    credentials = found(*secrets, image=image).credentials
    return [(each.registry, each.username, each.password) for each in credentials]


@pytest.mark.parametrize(
    "entry",
    [
        {"auth": encode("me:p:w")},
        {"username": "me", "password": "p:w"},
        {"auth": encode("me:p:w"), "username": "not", "password": "this", "email": "a@b"},
        {"auth": encode("me:p:w\0\0")},
        {"auth": encode("me:p:w").rstrip("=")},
        {"auth": encode("me:p:w"), "identitytoken": "t"},
    ],
)
def test_every_form_of_a_login_reads(entry: dict[str, str]) -> None:
    """``auth`` alone, the two parts, or both; a password may hold a colon."""
    secret = {"data": {".dockerconfigjson": encode(json.dumps({"auths": {_HOST: entry}}))}}

    assert logins(secret) == [(_HOST, "me", "p:w")]


_HOST = "registry.example"


def test_a_user_name_may_start_with_a_dollar() -> None:
    """As the robots of some registries do; nothing expands it."""
    entry = {"auth": encode("$oauthtoken:pw")}
    secret = {"stringData": {".dockercfg": json.dumps({_HOST: entry})}}

    assert logins(secret) == [(_HOST, "$oauthtoken", "pw")]


def test_only_logins_that_fit_an_image_are_kept_the_most_specific_first() -> None:
    """A path of a registry before the registry, one secret after another, no twins."""
    entry = {"username": "me", "password": "pw"}
    first = {"auths": {"registry.example": entry, "other.example": entry}}
    second = {"auths": {"registry.example/team": entry, "https://registry.example": entry}}

    secrets = [{"stringData": {".dockerconfigjson": json.dumps(d)}} for d in (first, second)]

    assert [each[0] for each in logins(*secrets)] == ["registry.example/team", "registry.example"]


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        ({}, "neither .dockerconfigjson nor .dockercfg"),
        ({"data": {".dockerconfigjson": "%"}}, "not JSON in base64"),
        ({"data": {".dockerconfigjson": encode("{")}}, "not JSON in base64"),
        pytest.param({"stringData": {".dockercfg": "[" * 10**5}}, "not JSON in", id="deep"),
        ({"data": {".dockercfg": encode("[]")}}, "no JSON object"),
        (config(), "no entry has a user name"),
        (config(a="text"), "no entry has a user name"),
        (config(a={"identitytoken": "t"}), "no entry has a user name"),
        (config(a={"auth": "???"}), "not base64 of user:password"),
        (config(a={"auth": encode("nocolon")}), "no entry has a user name"),
    ],
)
def test_an_unusable_secret_is_an_event_and_no_obstacle(secret: dict[str, Any], why: str) -> None:
    """The pull may work without it, as with a kubelet."""
    result = found(secret)

    assert result.credentials == ()
    (event,) = result.events
    assert (event.reason, event.type) == ("FailedToRetrieveImagePullSecret", "Warning")
    assert "s0" in event.message
    assert why in event.message


def test_an_absent_secret_is_an_event_too() -> None:
    """It says which."""
    result = pull_credentials(make_pod(imagePullSecrets=[{"name": "gone"}]), {}, [IMAGE])

    (event,) = result.events
    assert "pull secret gone: not found" in event.message


@pytest.mark.parametrize(
    ("registry", "image", "fits"),
    [
        ("registry.example", "registry.example/app", True),
        ("registry.example", "registry.example:5000/app", False),
        ("registry.example:5000", "registry.example:5000/app@sha256:00", True),
        ("registry.example/team", "registry.example/team/app", True),
        ("registry.example/team", "registry.example/teams/app", False),
        ("registry.example/team/app", "registry.example/team/app", True),
        ("registry.example/team/app", "registry.example/team/app:1", True),
        ("registry.example/team/app", "registry.example/team/app@sha256:00", True),
        ("registry.example/team/app", "registry.example/team/apples:1", False),
        ("registry.example/team", "registry.example/other/app", False),
        ("*.example", "registry.example/app", True),
        ("*.example", "deep.registry.example/app", False),
        ("docker.io", "nginx", True),
        ("docker.io", "me/app", True),
        ("docker.io/me", "index.docker.io/me/app", True),
        ("docker.io", "localhost/app", False),
        ("docker.io", "registry.example/app", False),
    ],
)
def test_hosts_ports_paths_and_globs_match(registry: str, image: str, fits: bool) -> None:
    """Docker Hub under all of its names."""
    assert matches(registry, image) is fits


@pytest.mark.parametrize(
    ("key", "registry"),
    [
        ("https://index.docker.io/v1/", "docker.io"),
        ("https://index.docker.io/v2", "docker.io"),
        ("registry-1.docker.io", "docker.io"),
        ("http://Registry.Example:5000", "registry.example:5000"),
        ("registry.example/v2/team/", "registry.example/team"),
        ("registry.example/team", "registry.example/team"),
    ],
)
def test_keys_read_as_host_port_and_path(key: str, registry: str) -> None:
    """Without scheme and API version."""
    assert registry_of(key) == registry


def test_images_split_as_docker_reads_them() -> None:
    """A first part without dot or colon is no host."""
    assert split_image("nginx:1") == ("docker.io", "library/nginx:1")
    assert split_image("me/app") == ("docker.io", "me/app")
    assert split_image("localhost/app") == ("localhost", "app")
    assert split_image("r:5000/app") == ("r:5000", "app")


def test_the_first_login_that_fits_pulls_the_image() -> None:
    """None if none does."""
    login = RegistryCredential(_HOST, "me", "pw")

    assert credential_for(IMAGE, [RegistryCredential("other", "me", "pw"), login]) is login
    assert credential_for("nginx", [login]) is None


def test_pull_secrets_without_a_login_for_the_image_are_noted() -> None:
    """A pull may work without; where none is named there is nothing to say."""
    named: dict[str, Any] = {"imagePullSecrets": [{"name": "regcred"}]}
    login = config(**{"registry.example": {"auth": encode("me:word")}})
    fitting = make_resolved_pod(objects={ObjectKey(SECRET, "default", "regcred"): login}, **named)

    assert [list(pull_notes(pod)) for pod in (make_resolved_pod(), fitting)] == [[], []]
    assert [each.path for each in pull_notes(make_resolved_pod(**named))] == [
        "spec.imagePullSecrets"
    ]
