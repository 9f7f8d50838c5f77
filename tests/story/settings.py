"""What the operator of the story writes: two virtual nodes and how bursting goes. Pure.

Shorter times than the defaults: an audience does not wait ten minutes. Fed by the stage; read by
`vk-provider run` and by the real descheduler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.rig import identity
from tests.rig.pki import Pair

POLICY = Path(__file__).parents[2] / "deploy" / "descheduler" / "policy.yaml"
MAX_IN_FLIGHT = 2
CYCLE_SECONDS = 6.0
PULL_SECONDS = 4.0
CREATE_SECONDS = 0.3
START_SECONDS = PULL_SECONDS + CREATE_SECONDS
"""From the create call to a serving instance, on the backends."""
STALE_SECONDS = 1.5
DEADLINE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Outside:
    """A virtual node: its name, the GPU it rents, and where its simulator answers."""

    name: str
    gpu: str
    gpus: int
    url: str


def documents(
    nodes: Sequence[Outside],
    pair: Pair,
    ports: Sequence[tuple[int, int]],
    prometheus: str,
    admission_check: bool,
) -> list[dict[str, Any]]:
    """The configuration file of `vk-provider run`."""
    virtual = [_node(*each, pair) for each in zip(nodes, ports, strict=True)]
    return [*virtual, bursting(prometheus, admission_check)]


def _node(outside: Outside, ports: tuple[int, int], pair: Pair) -> dict[str, Any]:
    backend = {
        "apiKey": {"env": "RUNPOD_API_KEY"},
        "baseUrl": outside.url,
        "gpuTypes": [outside.gpu],
        "listLagSeconds": 1,
    }
    gpus = outside.gpus
    capacity = {"cpu": str(gpus * 8), "memory": f"{gpus * 64}Gi", "nvidia.com/gpu": str(gpus)}
    server = {"address": "127.0.0.1", "port": ports[0], "plainPort": ports[1]}
    return {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "VirtualNode",
        "metadata": {"name": outside.name},
        "spec": {
            "capacity": {**capacity, "pods": str(gpus + 8)},
            "labels": {"topology.kubernetes.io/zone": "outside"},
            "tickSeconds": 1,
            "bursting": {"gate": {"enabled": True}},
            "leaderElection": {"namespace": identity.NAMESPACE},
            "server": {
                **server,
                "tls": {"certFile": str(pair.certificate), "keyFile": str(pair.key)},
            },
            "backends": [{"name": "runpod", "provider": "runpod", "config": backend}],
        },
    }


def bursting(prometheus: str, admission_check: bool) -> dict[str, Any]:
    """The document of kind Bursting."""
    gate = {
        "openAfterSeconds": 3,
        # Full is no reason to open: a pod that waits is.
        "openSlots": 0,
        "closeSlots": 2,
        "closeFraction": 0,
        "closeAfterSeconds": 2,
        "stableForSeconds": 5,
        "coldStartFactor": 0,
        "failedQuietSeconds": 5,
        "dwellSeconds": 1,
        "maxTransitions": 100,
        "signals": {"staleAfterSeconds": STALE_SECONDS},
        "heartbeatSeconds": 1,
    }
    homecoming = {
        "maxInFlight": MAX_IN_FLIGHT,
        "maxInFlightPerWorkload": MAX_IN_FLIGHT,
        "evictionsPerCycle": MAX_IN_FLIGHT,
        "readyWithinSeconds": 30,
    }
    spec: dict[str, Any] = {
        "training": {"priorityClasses": ["training"], "clusterQueues": ["train"]},
        "leaderElection": {"namespace": identity.NAMESPACE},
        "gate": gate,
        "homecoming": homecoming,
        "prometheus": {"url": prometheus, "everySeconds": 0.5, "timeoutSeconds": 1},
    }
    if admission_check:
        spec["admissionCheck"] = {"enabled": True, "deadlineSeconds": DEADLINE_SECONDS}
    return {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "Bursting",
        "metadata": {"name": "default"},
        "spec": spec,
    }


def policy() -> Mapping[str, Any]:
    """The shipped policy; only the age at which a pod may move is shorter here."""
    shipped: dict[str, Any] = yaml.safe_load(POLICY.read_text())
    shipped["profiles"][0]["pluginConfig"][0]["args"]["minPodAge"] = "5s"
    return shipped
