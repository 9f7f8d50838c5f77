"""The configuration block of the ``runpod`` provider, checked field by field.

Fed by ``spec.backends[].config``; feeds ``translate``, ``offers`` and ``client``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vk_provider.doubts import Doubt
from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.fields import Fields
from vk_provider.secrets import SecretSource
from vk_provider.urls import http_url
from vk_provider_runpod.doubts import KNOWN, doubts_about
from vk_provider_runpod.names import CPU_FLAVOURS

DEFAULT_BASE_URL = "https://api.runpod.io"
SECURE, COMMUNITY = "SECURE", "COMMUNITY"
_CUDA = r"\d+\.\d+"


@dataclass(frozen=True, slots=True)
class SshConfig:
    """How commands get into containers. ``idle_seconds``: how long a connection that nobody uses
    is kept; ``connect_seconds``: how long a server may take to let us in. ``start_server``: where
    a pod has a command of its own, start the image's server beside it."""

    private_key: SecretSource
    idle_seconds: float = 300.0
    connect_seconds: float = 15.0
    start_server: bool = False


@dataclass(frozen=True, slots=True)
class RunPodConfig:
    """One RunPod account as one backend. Lists are in the order of preference.

    ``gpu_types`` empty: every NVIDIA type of the catalogue. ``data_centers`` empty: RunPod
    chooses. ``container_disk_gb`` holds image and writable layer; what a pod asks for as
    ephemeral storage comes on top. ``doubts``: names in the lists that may be slips.
    """

    api_key: SecretSource | None
    base_url: str = DEFAULT_BASE_URL
    cloud_type: str = SECURE
    gpu_types: tuple[str, ...] = ()
    cpu_types: tuple[str, ...] = CPU_FLAVOURS
    data_centers: tuple[str, ...] = ()
    container_disk_gb: int = 20
    min_cuda_version: str | None = None
    network_volume_id: str | None = None
    container_registry_auth_id: str | None = None
    max_usd_per_hour: float | None = None
    requests_per_minute: int = 600
    list_lag_seconds: float = 10.0
    create_timeout_seconds: float = 60.0
    request_timeout_seconds: float = 20.0
    files_wrapper: bool = False
    ssh: SshConfig | None = None
    doubts: tuple[Doubt, ...] = ()


def parse_config(config: Mapping[str, Any], path: str) -> RunPodConfig:
    """The block as a value. Raises ``ConfigError`` with every problem in it."""
    problems: list[FieldProblem] = []
    fields = Fields(config, path, problems)
    parsed = RunPodConfig(
        api_key=fields.secret("apiKey"),
        base_url=_base_url(fields),
        cloud_type=fields.text("cloudType", SECURE, choices=(SECURE, COMMUNITY)),
        gpu_types=_unique(fields, "gpuTypes"),
        cpu_types=_unique(fields, "cpuTypes", CPU_FLAVOURS),
        data_centers=_unique(fields, "dataCenters", upper=True),
        container_disk_gb=fields.integer("containerDiskGb", 20, minimum=1, maximum=20_000),
        min_cuda_version=fields.optional_text(
            "minCudaVersion", pattern=_CUDA, allowed='a version such as "12.8"'
        ),
        network_volume_id=fields.optional_text("networkVolumeId"),
        container_registry_auth_id=fields.optional_text("containerRegistryAuthId"),
        max_usd_per_hour=fields.number("maxUsdPerHour", None, minimum=0.01),
        requests_per_minute=fields.integer("requestsPerMinute", 600, minimum=10),
        list_lag_seconds=fields.number("listLagSeconds", 10.0, minimum=0, maximum=600),
        create_timeout_seconds=fields.number("createTimeoutSeconds", 60.0, minimum=1),
        request_timeout_seconds=fields.number("requestTimeoutSeconds", 20.0, minimum=1),
        files_wrapper=fields.boolean("filesWrapper", False),
        ssh=_ssh(fields),
    )
    fields.done()
    if problems:
        raise ConfigError(problems)
    return replace(parsed, doubts=tuple(_doubts(fields)))


def _doubts(fields: Fields) -> Iterator[Doubt]:
    for key in KNOWN:
        names = [word.strip() for word in fields.texts(key)]
        upper = key == "dataCenters"
        yield from doubts_about(fields.path, key, [n.upper() if upper else n for n in names])


def _ssh(fields: Fields) -> SshConfig | None:
    """The block ``ssh``; without it no commands are run in containers."""
    is_there, block = fields.has("ssh"), fields.child("ssh")
    if not is_there:
        return None
    private_key = block.secret("privateKey")
    idle = block.number("idleSeconds", 300.0, minimum=1)
    connect = block.number("connectSeconds", 15.0, minimum=1, maximum=120)
    start = block.boolean("startServer", False)
    block.done()
    return SshConfig(private_key, idle, connect, start) if private_key is not None else None


def _base_url(fields: Fields) -> str:
    """The address without ``/v2``, which some texts count as part of it and some don't."""
    found = fields.text("baseUrl", DEFAULT_BASE_URL).rstrip("/")
    bare = found.removesuffix("/v2")
    parts = http_url(bare)
    if parts is None:
        fields.wrong("baseUrl", found, f'a URL such as "{DEFAULT_BASE_URL}" (with or without /v2)')
        return DEFAULT_BASE_URL
    if parts.username or parts.password:
        fields.refuse("baseUrl", "a password can't stand in the URL; use apiKey")
        return DEFAULT_BASE_URL
    if bare.endswith("/v1"):
        fields.wrong("baseUrl", found, "REST v2 only: v1 was switched off in November 2026")
    return bare


def _unique(
    fields: Fields, key: str, default: tuple[str, ...] = (), *, upper: bool = False
) -> tuple[str, ...]:
    words = [word.strip() for word in fields.texts(key, default)]
    for index, word in enumerate(words):
        if not word:
            fields.wrong(f"{key}[{index}]", word, "a name from RunPod's catalogue")
    # Lower-case data centres are accepted at create time and break things afterwards.
    return tuple(dict.fromkeys(word.upper() if upper else word for word in words if word))
