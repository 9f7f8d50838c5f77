"""The configuration block."""

from __future__ import annotations

from typing import Any

import pytest
from vk_provider_runpod.config import RunPodConfig, SshConfig, parse_config
from vk_provider_runpod.names import CPU_FLAVOURS

from vk_provider.faults import ConfigError
from vk_provider.secrets import SecretSource

KEY = {"apiKey": {"file": "/key"}}


def problems(block: dict[str, Any]) -> dict[str, str]:
    """What is wrong with a block, by path."""
    with pytest.raises(ConfigError) as raised:
        parse_config(block, "config")
    return {str(each).partition(": ")[0]: str(each) for each in raised.value.problems}


def test_a_key_is_enough() -> None:
    """Everything else has a default."""
    parsed = parse_config(KEY, "config")

    assert parsed == RunPodConfig(SecretSource(file="/key"))
    assert (parsed.cloud_type, parsed.cpu_types) == ("SECURE", CPU_FLAVOURS)


def test_everything_can_be_given() -> None:
    """And arrives."""
    parsed = parse_config(
        {
            **KEY,
            "baseUrl": "http://127.0.0.1:8484/v2/",
            "cloudType": "COMMUNITY",
            "gpuTypes": ["NVIDIA L4", "NVIDIA L4", " NVIDIA L40S "],
            "cpuTypes": ["cpu5c"],
            "dataCenters": ["eu-ro-1"],
            "containerDiskGb": 50,
            "minCudaVersion": "12.8",
            "networkVolumeId": "vol",
            "containerRegistryAuthId": "reg",
            "maxUsdPerHour": 2,
            "requestsPerMinute": 60,
            "listLagSeconds": 5,
            "createTimeoutSeconds": 90,
            "requestTimeoutSeconds": 10,
            "filesWrapper": True,
        },
        "config",
    )

    assert parsed == RunPodConfig(
        SecretSource(file="/key"), "http://127.0.0.1:8484", "COMMUNITY",
        ("NVIDIA L4", "NVIDIA L40S"), ("cpu5c",), ("EU-RO-1",), 50, "12.8", "vol", "reg", 2.0,
        60, 5.0, 90.0, 10.0, True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "url", ["https://api.runpod.io", "https://api.runpod.io/v2", "https://api.runpod.io/v2/"]
)
def test_the_address_may_or_may_not_end_in_the_version(url: str) -> None:
    """Texts about the API do it both ways."""
    assert parse_config({**KEY, "baseUrl": url}, "config").base_url == "https://api.runpod.io"


@pytest.mark.parametrize(
    "url", ["api.runpod.io", "ftp://x", "https://", "https://x/v1", "http://[", "https://x?a=b"]
)
def test_another_address_is_refused(url: str) -> None:
    """By its path."""
    assert list(problems({**KEY, "baseUrl": url})) == ["config.baseUrl"]


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    """It would travel into every message."""
    found = problems({**KEY, "baseUrl": "https://me:hunter2@x"})

    assert "hunter2" not in found["config.baseUrl"]


def test_a_key_in_the_configuration_itself_is_refused_and_not_shown() -> None:
    """Configurations are committed."""
    found = problems({"apiKey": "rpa_hunter2"})

    assert "{file: PATH}" in found["config.apiKey"]
    assert "hunter2" not in found["config.apiKey"]


def test_all_problems_come_at_once_with_the_nearest_key() -> None:
    """One round of mending is enough."""
    found = problems({"gpuType": ["x"], "cloudType": "ANY", "gpuTypes": [""], "containerDiskGb": 0})

    assert set(found) == {
        "config.apiKey",
        "config.gpuType",
        "config.cloudType",
        "config.gpuTypes[0]",
        "config.containerDiskGb",
    }
    assert 'did you mean "gpuTypes"' in found["config.gpuType"]


def test_the_key_for_ssh_is_a_secret_of_its_own() -> None:
    """With times that have defaults."""
    block = {"privateKey": {"file": "/keys/node"}, "idleSeconds": 60}

    found = parse_config({"apiKey": {"env": "K"}, "ssh": block}, "config").ssh

    assert found == SshConfig(SecretSource(file="/keys/node"), idle_seconds=60)
    assert parse_config({"apiKey": {"env": "K"}}, "config").ssh is None


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ({}, "config.ssh.privateKey: missing"),
        ({"privateKey": "-----BEGIN"}, "config.ssh.privateKey: a secret can't stand"),
        ({"privateKey": {"env": "K"}, "idle": 1}, "config.ssh.idle: unknown key"),
        ({"privateKey": {"env": "K"}, "connectSeconds": 0}, "config.ssh.connectSeconds: found 0"),
    ],
)
def test_a_wrong_ssh_block_is_told(block: dict[str, Any], problem: str) -> None:
    """By the path, and never with the key."""
    with pytest.raises(ConfigError) as raised:
        parse_config({"apiKey": {"env": "K"}, "ssh": block}, "config")

    (found,) = raised.value.problems
    assert str(found).startswith(problem)
    assert "BEGIN" not in str(found)
