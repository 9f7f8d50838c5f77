"""Containers: with tokens of home handed on, their mounts and home's API server go along."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vk_provider_kubernetes.config import HomeApi, KubernetesConfig
from vk_provider_kubernetes.translate import translate

from vk_provider.testing.builders import make_container, make_resolved_pod

MOUNT = {"name": "kube-api-access-abcde", "mountPath": "/var/run/secrets/x", "readOnly": True}
SOURCES = [{"serviceAccountToken": {"path": "token"}}]
VOLUME = {"name": "kube-api-access-abcde", "projected": {"sources": SOURCES}}


@pytest.fixture
def handing_on(config: KubernetesConfig) -> KubernetesConfig:
    """A backend that hands tokens on."""
    return replace(config, tokens=True, home_api=HomeApi("home.example", 6443))


def containers(config: KubernetesConfig, **pod: Any) -> list[dict[str, Any]]:
    """The containers of a pod whose token volume is mounted in the first."""
    main = make_container(volumeMounts=[MOUNT], **pod)
    given: dict[str, Any] = {"volumes": [VOLUME], "initContainers": [make_container("init")]}
    made = translate(make_resolved_pod(containers=[main], **given), config).body["spec"]
    return [*made["containers"], *made["initContainers"]]


def variables(container: dict[str, Any]) -> dict[str, str]:
    """Those with a value."""
    return {each["name"]: each["value"] for each in container.get("env", [])}


def test_the_mount_of_the_token_stays_and_home_is_where_clients_look(
    handing_on: KubernetesConfig,
) -> None:
    """The other cluster's kubelet would name its own API server."""
    main, init = containers(handing_on)

    assert main["volumeMounts"] == [MOUNT]
    assert variables(main) == variables(init)
    assert variables(main) == {
        "KUBERNETES_SERVICE_HOST": "home.example",
        "KUBERNETES_SERVICE_PORT": "6443",
        "KUBERNETES_SERVICE_PORT_HTTPS": "6443",
        "KUBERNETES_PORT": "tcp://home.example:6443",
    }
    assert "volumeMounts" not in init


def test_an_address_of_the_newer_family_stands_in_brackets_in_a_url(
    handing_on: KubernetesConfig,
) -> None:
    """And without them where clients add their own."""
    main, _ = containers(replace(handing_on, home_api=HomeApi("fd00::1", 443)))

    assert variables(main)["KUBERNETES_SERVICE_HOST"] == "fd00::1"
    assert variables(main)["KUBERNETES_PORT"] == "tcp://[fd00::1]:443"


def test_what_the_pod_sets_itself_stands(handing_on: KubernetesConfig) -> None:
    """It knows a better way."""
    own = {"name": "KUBERNETES_SERVICE_HOST", "value": "proxy"}

    main, _ = containers(handing_on, env=[own])

    assert variables(main)["KUBERNETES_SERVICE_HOST"] == "proxy"


def test_without_a_token_nothing_is_said_of_home(handing_on: KubernetesConfig) -> None:
    """Such a pod has no business there."""
    made = translate(make_resolved_pod(), handing_on).body["spec"]

    assert made["containers"] == [make_container()]


def test_where_tokens_stay_at_home_so_does_the_mount(config: KubernetesConfig) -> None:
    """With the volume."""
    main, _ = containers(config)

    assert main.get("volumeMounts", []) == []
    assert "env" not in main
