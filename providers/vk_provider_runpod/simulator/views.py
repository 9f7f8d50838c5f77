"""The simulated service's answers as JSON, each in the shape of the OpenAPI document.

Fed by ``model`` and ``catalogue``; feeds ``app``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vk_provider.testing.simulator.clock import rfc3339
from vk_provider_runpod.simulator.catalogue import Catalogue, CpuFlavour, DataCentre, GpuModel
from vk_provider_runpod.simulator.model import SimulatedPod, Volume, actions

PUBLIC_IP = "203.0.113.10"
CARRIER_GRADE_IP = "100.65.4.2"
LOOPBACK = "127.0.0.1"
SSH_PORT = 22


def pod(simulated: SimulatedPod, catalogue: Catalogue, now: float) -> dict[str, Any]:
    """One pod as ``GET /v2/pods/{id}`` shows it."""
    body, status = simulated.body, simulated.status(now)
    uptime = simulated.uptime(now)
    answer: dict[str, Any] = {
        "id": simulated.id,
        "name": body["name"],
        "image": body["image"],
        "args": body.get("args", ""),
        "disk": body.get("disk", 20),
        "ports": list(body.get("ports") or []),
        "env": dict(simulated.env),
        "registry": body.get("registry"),
        "status": status,
        "actions": list(actions(status)),
        "mounts": dict(body.get("mounts") or {}),
        "cloud": body.get("cloud", "SECURE"),
        "dataCenterId": simulated.data_center,
        "cudaVersion": "13.0" if "gpu" in body else None,
        "template": None,
        # As observed: a stopped pod still shows its hourly rate.
        "cost": round(simulated.cost, 4),
        "locked": simulated.locked,
        "globalNetworking": {"enabled": False},
        "runtime": None if uptime is None else _runtime(simulated, uptime),
        "ssh": _ssh(simulated, uptime),
        "createdAt": rfc3339(simulated.created_at),
        "startedAt": rfc3339(simulated.started_at),
        **_compute(body, catalogue),
    }
    return {key: value for key, value in answer.items() if key not in simulated.hidden_fields}


def _compute(body: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    if gpu := body.get("gpu"):
        return {"gpu": {"id": gpu["id"], "count": gpu.get("count", 1)}}
    cpu = body["cpu"]
    flavour = catalogue.cpu(cpu["id"])
    ratio = flavour.ram_per_vcpu if flavour else 2.0
    memory = max(1, int(cpu["vcpuCount"] * ratio))
    return {"cpu": {"id": cpu["id"], "vcpuCount": cpu["vcpuCount"], "memory": memory}}


def public_port(simulated: SimulatedPod, private: int) -> int:
    """The public port of a TCP mapping: stable for a pod, different between pods."""
    return 10_000 + (simulated.number * 100 + private) % 50_000


def _runtime(simulated: SimulatedPod, uptime: int) -> dict[str, Any]:
    mapped = uptime >= simulated.behaviour.ports_seconds
    ports = _mappings(simulated) if mapped else []
    count = (simulated.body.get("gpu") or {}).get("count", 0)
    return {
        "uptime": uptime,
        "gpus": [{"util": 0, "memoryUtil": 0} for _ in range(count)],
        "cpu": {"util": 3},
        "memory": {"util": 12},
        "ports": ports,
    }


def _mappings(simulated: SimulatedPod) -> list[dict[str, Any]]:
    ports: list[dict[str, Any]] = []
    for entry in simulated.body.get("ports") or []:
        number, _, protocol = str(entry).partition("/")
        private, tcp = int(number), protocol == "tcp"
        # The entry of an HTTP port carries a carrier-grade address that nobody can reach.
        ip = PUBLIC_IP if tcp else CARRIER_GRADE_IP
        public = public_port(simulated, private)
        if private == SSH_PORT and tcp and simulated.ssh_port is not None:
            ip, public = LOOPBACK, simulated.ssh_port
        ports.append({"private": private, "public": public, "type": protocol, "ip": ip})
    return ports


def _ssh(simulated: SimulatedPod, uptime: int | None) -> dict[str, Any]:
    token = f"{simulated.id}-64411eb2"
    proxy = {
        "host": "ssh.runpod.io",
        "port": 22,
        "username": token,
        "command": f"ssh {token}@ssh.runpod.io",
    }
    direct = None
    if uptime is not None and "22/tcp" in (simulated.body.get("ports") or []):
        host = PUBLIC_IP if simulated.ssh_port is None else LOOPBACK
        port = simulated.ssh_port or public_port(simulated, SSH_PORT)
        command = f"ssh root@{host} -p {port}"
        direct = {"host": host, "port": port, "username": "root", "command": command}
    return {"proxy": proxy, "direct": direct}


def gpu_type(
    model: GpuModel, catalogue: Catalogue, with_stock: bool, query: Mapping[str, Any]
) -> dict[str, Any]:
    """One entry of ``GET /v2/catalog/gpus``; ``query`` holds count and CUDA wishes."""
    answer: dict[str, Any] = {
        "id": model.id,
        "name": model.name,
        "pool": model.pool,
        "manufacturer": model.manufacturer,
        "memory": model.memory,
        "secure": True,
        "community": model.community_price > 0,
        "price": {"secure": model.secure_price, "community": model.community_price},
        "maxCount": {"secure": model.max_count, "community": max(1, model.max_count // 2)},
    }
    if not with_stock:
        return answer
    count = query.get("count", 1)
    fits = count <= model.max_count
    levels = {
        centre: catalogue.level(model.id, centre, count) for centre in model.data_centers if fits
    }
    answer["availability"] = best(list(levels.values()))
    if levels:
        answer["dataCenters"] = centre_levels(catalogue, levels)
    if model.cuda:
        stocked = answer["availability"] != "NONE"
        answer["cudaVersions"] = [{"version": v, "available": stocked} for v in model.cuda]
    return answer


def cpu_type(model: CpuFlavour, catalogue: Catalogue, with_stock: bool) -> dict[str, Any]:
    """One entry of ``GET /v2/catalog/cpus``."""
    price = {"securePerVcpu": model.price_per_vcpu, "serverlessPerVcpu": model.price_per_vcpu}
    answer: dict[str, Any] = {
        "id": model.id,
        "name": model.name,
        "group": model.group,
        "vcpu": {"min": model.min_vcpu, "max": model.max_vcpu},
        "ramGbPerVcpu": model.ram_per_vcpu,
        "price": price,
    }
    if with_stock:
        levels = {centre.id: catalogue.level(model.id, centre.id) for centre in catalogue.centres}
        answer["availability"] = best(list(levels.values()))
        answer["dataCenters"] = centre_levels(catalogue, levels)
    return answer


def data_centre(centre: DataCentre, catalogue: Catalogue, include: Sequence[str]) -> dict[str, Any]:
    """One entry of ``GET /v2/catalog/datacenters``."""
    answer: dict[str, Any] = {
        "id": centre.id,
        "name": centre.name,
        "region": centre.region,
        "globalNetwork": centre.global_network,
        "networkVolumeTypes": list(centre.volume_types),
        "compliance": list(centre.compliance),
    }
    if "GPU_AVAILABILITY" in include:
        here = [gpu for gpu in catalogue.gpus if centre.id in gpu.data_centers]
        answer["gpuAvailability"] = [_stock(gpu, catalogue, centre.id) for gpu in here]
    if "CPU_AVAILABILITY" in include:
        answer["cpuAvailability"] = [_stock(cpu, catalogue, centre.id) for cpu in catalogue.cpus]
    return answer


def _stock(thing: GpuModel | CpuFlavour, catalogue: Catalogue, centre: str) -> dict[str, Any]:
    level = catalogue.level(thing.id, centre)
    return {"id": thing.id, "name": thing.name, "availability": level}


def centre_levels(catalogue: Catalogue, levels: Mapping[str, str]) -> list[dict[str, Any]]:
    """The ``dataCenters`` array of a catalogue entry."""
    names = {centre.id: centre.name for centre in catalogue.centres}
    return [
        {"id": centre, "name": names.get(centre, centre), "availability": level}
        for centre, level in levels.items()
    ]


def best(levels: Sequence[str]) -> str:
    """The highest of several stock levels."""
    order = ("NONE", "LOW", "MEDIUM", "HIGH")
    return max(levels, key=order.index, default="NONE")


def volume(simulated: Volume) -> dict[str, Any]:
    """One network volume."""
    return {
        "id": simulated.id,
        "name": simulated.name,
        "size": simulated.size,
        "dataCenter": simulated.data_center,
        "type": simulated.kind,
    }


def problem(status: int, title: str, detail: str, errors: Sequence[str] = ()) -> dict[str, Any]:
    """An error body of type ``application/problem+json``."""
    answer: dict[str, Any] = {"title": title, "status": status, "detail": detail}
    return {**answer, "errors": list(errors)} if errors else answer
