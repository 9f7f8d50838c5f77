"""Whose key an instance is told, and where its SSH server is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from vk_provider_runpod.config import RunPodConfig, SshConfig
from vk_provider_runpod.ssh_access import (
    ANNOTATION,
    SshTarget,
    is_started,
    is_wanted,
    key_env,
    notes,
    target_of,
    with_mapping,
)

from vk_provider.faults import InstanceNotFoundError, NotSupportedError, UnavailableError
from vk_provider.secrets import SecretSource
from vk_provider.testing.builders import make_container, make_resolved_pod

DIRECT = {"host": "203.0.113.10", "port": 10022, "username": "root", "command": "ssh …"}
MakePod = Callable[..., dict[str, Any]]


def test_it_is_wanted_where_it_is_configured_and_the_pod_agrees(config: RunPodConfig) -> None:
    """A pod may keep us out."""
    with_ssh = replace(config, ssh=SshConfig(SecretSource(file="/key")))
    closed = make_resolved_pod(metadata={"annotations": {ANNOTATION: "False"}})

    assert is_wanted(make_resolved_pod(), with_ssh)
    assert not is_wanted(closed, with_ssh)
    assert not is_wanted(make_resolved_pod(), config)


def test_our_key_stands_beside_the_pods_own() -> None:
    """Whoever had a key in the pod keeps his way in."""
    found = key_env({"PUBLIC_KEY": "ssh-ed25519 AAAA theirs"}, "ssh-ed25519 BBBB ours")

    assert found == {
        "PUBLIC_KEY": "ssh-ed25519 AAAA theirs\nssh-ed25519 BBBB ours",
        "SSH_PUBLIC_KEY": "ssh-ed25519 BBBB ours",
    }


@pytest.mark.parametrize(
    ("ports", "mapped"),
    [([], ["22/tcp"]), (["80/http"], ["80/http", "22/tcp"]), (["22/tcp"], ["22/tcp"])],
)
def test_port_22_is_mapped_once(ports: list[str], mapped: list[str]) -> None:
    """Also where the pod lists it itself."""
    assert with_mapping(ports) == mapped


def test_a_server_is_started_beside_a_command_where_that_is_wished(config: RunPodConfig) -> None:
    """By the pod or by the operator; without a command the image's own script does it."""
    asked: dict[str, Any] = {"metadata": {"annotations": {ANNOTATION: "start"}}}
    shut: dict[str, Any] = {"metadata": {"annotations": {ANNOTATION: "false"}}}
    command: dict[str, Any] = {"containers": [make_container(command=["serve"])]}
    usual = replace(config, ssh=SshConfig(SecretSource(file="/key")))
    always = replace(config, ssh=SshConfig(SecretSource(file="/key"), start_server=True))

    assert is_started(make_resolved_pod(**command, **asked), usual)
    assert is_started(make_resolved_pod(**command), always)
    assert not is_started(make_resolved_pod(**command), usual)
    assert not is_started(make_resolved_pod(**asked), always)
    assert not is_started(make_resolved_pod(**command, **shut), always)
    assert not is_started(make_resolved_pod(**command, **asked), config)


def test_a_command_in_place_of_the_start_script_is_noted(config: RunPodConfig) -> None:
    """It is the usual reason why nobody answers."""
    usual = replace(config, ssh=SshConfig(SecretSource(file="/key")))
    plain = make_resolved_pod()
    own = make_resolved_pod(containers=[make_container(command=["serve"])])

    assert list(notes(plain, usual)) == []
    (note,) = notes(own, usual)
    assert note.path == "spec.containers[0].command"
    assert "annotation" in note.note
    always = replace(config, ssh=SshConfig(SecretSource(file="/key"), start_server=True))
    assert "beside" in next(notes(own, always)).note


def test_the_direct_address_is_taken(backend_pod: MakePod) -> None:
    """As RunPod tells it."""
    pod = backend_pod(ports=["22/tcp"], ssh={"proxy": None, "direct": DIRECT})

    found = target_of(pod, "main")

    assert found == SshTarget("203.0.113.10", 10022, "root")
    assert str(found) == "root@203.0.113.10:10022"


def test_without_it_the_mapping_of_port_22_is(backend_pod: MakePod) -> None:
    """It says the same."""
    entries = [
        {"private": 80, "public": 1, "type": "tcp", "ip": "203.0.113.9"},
        {"private": 22, "public": None, "type": "tcp", "ip": None},
        {"private": 22, "public": 10022, "type": "tcp", "ip": "203.0.113.10"},
    ]
    pod = backend_pod(ports=["22/tcp"], runtime={"uptime": 3, "ports": entries})

    assert target_of(pod) == SshTarget("203.0.113.10", 10022, "root")


def test_what_is_missing_is_said(backend_pod: MakePod) -> None:
    """Another container, no mapping at all, or one that is not there yet."""
    with pytest.raises(InstanceNotFoundError, match="sidecar"):
        target_of(backend_pod(ports=["22/tcp"]), "sidecar")
    with pytest.raises(NotSupportedError, match="no mapping for port 22/tcp"):
        target_of(backend_pod(ports=["80/http"]), "main")
    with pytest.raises(UnavailableError, match="not mapped port 22/tcp"):
        target_of(backend_pod(ports=["22/tcp"]), "main")
