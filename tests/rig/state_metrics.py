"""A stand-in for kube-state-metrics, which is no Go module: its series, after its documentation.

async with state_metrics(bed) as source:
    ...  # Prometheus scrapes source.port
    source.fault = Fault.EMPTY

Only the series that rules and queries of this product read. It answers from the API server at
every scrape, and can be made to err as the real one does after a restart or a wrong relabelling.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.rig.control_plane import ControlPlane

Json = Mapping[str, Any]
Serve = Callable[[web.Request], Awaitable[web.Response]]
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_SUFFIXES = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 1e3, "M": 1e6}
_UNITS = {"cpu": "core", "memory": "byte"}


class Fault(enum.Enum):
    """How it errs."""

    NONE = "none"
    EMPTY = "empty"
    """It answers, and has nothing to say."""
    SHRUNKEN = "shrunken"
    """Every second node is missing."""


class StateMetrics:
    """Answers scrapes on ``port``."""

    def __init__(self, bed: ControlPlane, port: int) -> None:
        self.port = port
        self.fault = Fault.NONE
        self._bed = bed

    async def serve(self, _: web.Request) -> web.Response:
        """Everything as it is now."""
        nodes = (await self._bed.get_json("/api/v1/nodes"))["items"]
        pods = (await self._bed.get_json("/api/v1/pods"))["items"]
        if self.fault is Fault.SHRUNKEN:
            nodes = nodes[::2]
        series = [] if self.fault is Fault.EMPTY else [*of_nodes(nodes), *of_pods(pods)]
        return web.Response(text="".join(f"{line}\n" for line in series))


@asynccontextmanager
async def state_metrics(bed: ControlPlane) -> AsyncIterator[StateMetrics]:
    """Serve until left."""
    source = StateMetrics(bed, bed.free_port())
    async with exporting(source.port, source.serve):
        yield source


@asynccontextmanager
async def exporting(port: int, serve: Serve) -> AsyncIterator[None]:
    """Answer scrapes of `/metrics` on a port of loopback until left."""
    app = web.Application()
    app.router.add_get("/metrics", serve)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield
    finally:
        await runner.cleanup()


def of_nodes(nodes: Iterable[Json]) -> Iterator[str]:
    """The series of Nodes."""
    for node in nodes:
        name = node["metadata"]["name"]
        yield line("kube_node_info", {"node": name}, 1)
        unschedulable = bool(node["spec"].get("unschedulable"))
        yield line("kube_node_spec_unschedulable", {"node": name}, unschedulable)
        for taint in node["spec"].get("taints") or ():
            labels = {"node": name, "key": taint["key"], "value": taint.get("value", "")}
            yield line("kube_node_spec_taint", {**labels, "effect": taint["effect"]}, 1)
        for condition in node["status"].get("conditions") or ():
            for status in ("true", "false", "unknown"):
                labels = {"node": name, "condition": condition["type"], "status": status}
                holds = condition["status"].lower() == status
                yield line("kube_node_status_condition", labels, holds)
        for kind in ("allocatable", "capacity"):
            for resource, amount in (node["status"].get(kind) or {}).items():
                labels = {"node": name, **_resource(resource)}
                yield line(f"kube_node_status_{kind}", labels, number(amount))


def of_pods(pods: Iterable[Json]) -> Iterator[str]:
    """The series of Pods."""
    for pod in pods:
        metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
        who = {"namespace": metadata["namespace"], "pod": metadata["name"], "uid": metadata["uid"]}
        node = spec.get("nodeName", "")
        owner = next(iter(metadata.get("ownerReferences") or ()), {"kind": "", "name": ""})
        about = {
            "node": node,
            "priority_class": spec.get("priorityClassName", ""),
            "created_by_kind": owner["kind"],
            "created_by_name": owner["name"],
        }
        yield line("kube_pod_info", {**who, **about}, 1)
        for phase in PHASES:
            yield line("kube_pod_status_phase", {**who, "phase": phase}, status["phase"] == phase)
        yield from _of_conditions(who, status)
        for container in spec["containers"]:
            wanted = (container.get("resources") or {}).get("requests") or {}
            for resource, amount in wanted.items():
                labels = {**who, "container": container["name"], "node": node}
                labels |= _resource(resource)
                yield line("kube_pod_container_resource_requests", labels, number(amount))


def _of_conditions(who: Mapping[str, str], status: Json) -> Iterator[str]:
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    scheduled, ready = conditions.get("PodScheduled", {}), conditions.get("Ready", {})
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        yield line("kube_pod_status_unschedulable", who, 1)
    for value in ("true", "false", "unknown"):
        holds = ready.get("status", "Unknown").lower() == value
        yield line("kube_pod_status_ready", {**who, "condition": value}, holds)


def line(name: str, labels: Mapping[str, str], value: float) -> str:
    """One sample in Prometheus' text format."""
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {float(value):g}"


def number(amount: str) -> float:
    """A quantity as a number: ``500m`` is 0.5, ``2Gi`` is 2147483648."""
    text = str(amount)
    if text.endswith("m"):
        return float(text[:-1]) / 1000
    digits = text.rstrip("KMGTik")
    return float(digits) * _SUFFIXES[text[len(digits) :]]


def _resource(name: str) -> dict[str, str]:
    """``nvidia.com/gpu`` is written ``nvidia_com_gpu``, in whole ones."""
    safe = name.translate(str.maketrans("./-", "___"))
    return {"resource": safe, "unit": _UNITS.get(name, "integer")}


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
