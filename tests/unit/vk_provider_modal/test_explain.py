"""The request as a person may see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from vk_provider_modal.config import ModalConfig
from vk_provider_modal.explain import explain

from vk_provider.pods.references import SECRET, ObjectKey
from vk_provider.pods.types import IMPLICIT_OFFER
from vk_provider.testing.builders import make_container, make_resolved_pod

WORD = "hunter2-hunter2"
OBJECTS = {ObjectKey(SECRET, "default", "login"): {"stringData": {"word": WORD}}}


def test_a_secret_is_hidden_wherever_it_stands(config: ModalConfig) -> None:
    """In env, in arguments, in a value that quotes it."""
    reference = {"secretKeyRef": {"name": "login", "key": "word"}}
    env = [
        {"name": "WORD", "valueFrom": reference},
        {"name": "URL", "value": "https://me:$(WORD)@a"},
        {"name": "PLAIN", "value": "shown"},
    ]
    container = make_container(env=env, args=["--word=$(WORD)"])
    pod = make_resolved_pod(objects=OBJECTS, containers=[container])

    shown = json.dumps(explain(pod, IMPLICIT_OFFER, config).request)

    assert WORD not in shown
    assert "https://me:***@a" in shown
    assert "shown" in shown


def test_everything_from_a_whole_secret_is_hidden(config: ModalConfig) -> None:
    """However it is named."""
    container = make_container(envFrom=[{"secretRef": {"name": "login"}}])
    pod = make_resolved_pod(objects=OBJECTS, containers=[container])

    assert explain(pod, IMPLICIT_OFFER, config).request["env"] == {"word": "***"}


def test_of_files_only_the_sizes_are_shown(configured: Callable[..., ModalConfig]) -> None:
    """They may be a Secret's."""
    mount = {"name": "s", "mountPath": "/s"}
    pod = make_resolved_pod(
        containers=[make_container(command=["x"], volumeMounts=[mount])],
        volumes=[{"name": "s", "secret": {"secretName": "login"}}],
        objects=OBJECTS,
    )

    request = explain(pod, IMPLICIT_OFFER, configured(files_wrapper=True)).request

    assert request["env"] == {"VK_PROVIDER_FILES": "644 /s/word (15 bytes)"}


def test_a_login_is_shown_without_its_password(config: ModalConfig) -> None:
    """And a pull secret that doesn't fit is told."""
    login = json.dumps({"auths": {"registry.example": {"username": "me", "password": WORD}}})
    objects = {ObjectKey(SECRET, "default", "pull"): {"stringData": {".dockerconfigjson": login}}}
    pulling: dict[str, Any] = {"imagePullSecrets": [{"name": "pull"}]}
    fitting = make_resolved_pod(objects=objects, **pulling)
    other = make_container() | {"image": "ghcr.io/a/b:1"}
    missing = make_resolved_pod(objects=objects, containers=[other], **pulling)

    shown = explain(fitting, IMPLICIT_OFFER, config)

    assert shown.request["image"]["login"] == {"username": "me", "password": "***"}
    notes = [note.path for note in explain(missing, IMPLICIT_OFFER, config).notes]
    assert "spec.imagePullSecrets" in notes
