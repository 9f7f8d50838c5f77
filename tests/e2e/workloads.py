"""Manifests for a virtual node under test, and what the API server says of them.

Feeds the end-to-end tests: each has a namespace of its own, and `Workloads` speaks about it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.rig.access import ApiError
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

Json = dict[str, Any]
TOLERATE_ALL = [{"operator": "Exists"}]
STEER = "fake.vk-provider.dev/"

_GROUPS = {
    "deployments": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "daemonsets": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
}


def steered(**wishes: object) -> dict[str, str]:
    """Annotations for the fake: `run_seconds=1` is `fake.vk-provider.dev/run-seconds: "1"`."""
    return {STEER + name.replace("_", "-"): str(value) for name, value in wishes.items()}


def pod_template(
    node: str,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    """A pod for this node: one small container, tolerating the node's own taint."""
    container = {"name": "main", "image": "registry.example/app:1"}
    return {
        "metadata": {"annotations": dict(annotations or {}), "labels": dict(labels or {})},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [{"key": "virtual-kubelet.io/provider", "operator": "Exists"}],
            "containers": [container],
        }
        | spec,
    }


def deployment(name: str, replicas: int, template: Json) -> Json:
    """A Deployment of this template."""
    return _of_template("apps/v1", "Deployment", name, template) | {
        "spec": _selecting(name, template) | {"replicas": replicas}
    }


def statefulset(name: str, replicas: int, template: Json) -> Json:
    """A StatefulSet of this template."""
    return _of_template("apps/v1", "StatefulSet", name, template) | {
        "spec": _selecting(name, template) | {"replicas": replicas, "serviceName": name}
    }


def daemonset(name: str, template: Json) -> Json:
    """A DaemonSet of this template."""
    return _of_template("apps/v1", "DaemonSet", name, template) | {
        "spec": _selecting(name, template)
    }


def job(name: str, template: Json, **spec: Any) -> Json:
    """A Job of this template."""
    template["spec"].setdefault("restartPolicy", "Never")
    return _of_template("batch/v1", "Job", name, template) | {"spec": {"template": template} | spec}


def _of_template(version: str, kind: str, name: str, template: Json) -> Json:
    if kind != "Job":
        template["metadata"]["labels"]["app"] = name
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


def _selecting(name: str, template: Json) -> Json:
    return {"selector": {"matchLabels": {"app": name}}, "template": template}


class Workloads:
    """One namespace of one bed."""

    def __init__(self, bed: ControlPlane, namespace: str) -> None:
        self.bed = bed
        self.namespace = namespace

    def path(self, kind: str, name: str = "", group: str = "") -> str:
        """Where objects of this plural name are."""
        base = group or _GROUPS.get(kind, "/api/v1")
        return f"{base}/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    async def create(self, kind: str, body: Json) -> Json:
        """Create an object."""
        made: Json = await self.bed.request_json("POST", self.path(kind), body)
        return made

    async def create_pod(self, name: str, template: Json) -> Json:
        """A bare pod of a template."""
        body = {"apiVersion": "v1", "kind": "Pod", **template}
        body["metadata"] = {**template["metadata"], "name": name}
        return await self.create("pods", body)

    async def get(self, kind: str, name: str) -> Json | None:
        """An object, or None if there is none."""
        try:
            found: Json = await self.bed.get_json(self.path(kind, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return found

    async def pods(self, selector: str = "") -> list[Json]:
        """The namespace's pods, oldest first."""
        query = f"?labelSelector={selector}" if selector else ""
        answer = await self.bed.get_json(self.path("pods") + query)
        found: list[Json] = answer["items"]
        return sorted(found, key=lambda pod: int(pod["metadata"]["resourceVersion"]))

    async def delete(self, kind: str, name: str, grace: int | None = None) -> None:
        """Ask for an object's deletion."""
        body = None if grace is None else {"gracePeriodSeconds": grace}
        await self.bed.request_json("DELETE", self.path(kind, name), body)

    async def patch(self, path: str, patch: Json) -> Json:
        """A strategic merge patch, as admin."""
        kind = "application/strategic-merge-patch+json"
        done: Json = await self.bed.request_json("PATCH", path, patch, content_type=kind)
        return done

    async def until(
        self,
        kind: str,
        name: str,
        holds: Callable[[Json], object],
        what: str = "",
        seconds: float = 30.0,
    ) -> Json:
        """Wait until an object exists and the condition holds for it; return it."""
        last: Json | None = None

        async def probe() -> Json | None:
            nonlocal last
            last = await self.get(kind, name)
            return last if last is not None and holds(last) else None

        try:
            return await eventually(probe, f"{kind} {name} {what}", seconds=seconds)
        except TimeoutError as error:
            shown = json.dumps((last or {}).get("status"), indent=1)
            raise TimeoutError(f"{error}; its status: {shown}") from error

    async def pod_in(self, name: str, phase: str, seconds: float = 30.0) -> Json:
        """Wait until a pod is in a phase; return it."""
        return await self.until("pods", name, lambda pod: phase_of(pod) == phase, phase, seconds)

    async def waiting(self, name: str, reason: str, seconds: float = 30.0) -> Json:
        """Wait until a pod's first container waits for this reason; return the pod."""
        return await self.until(
            "pods", name, lambda pod: waiting_reason(pod) == reason, reason, seconds
        )

    async def gone(self, kind: str, name: str, seconds: float = 30.0) -> None:
        """Wait until an object is no more."""

        async def probe() -> bool:
            return await self.get(kind, name) is None

        await eventually(probe, f"end of {kind} {name}", seconds=seconds)

    async def ready(self, kind: str, name: str, replicas: int, seconds: float = 30.0) -> Json:
        """Wait until a workload has so many ready replicas."""
        return await self.until(
            kind,
            name,
            lambda one: one["status"].get("readyReplicas", 0) == replicas,
            f"{replicas} ready",
            seconds,
        )

    async def events(self, name: str, reason: str = "") -> list[Json]:
        """The Events about an object of this name."""
        answer = await self.bed.get_json(self.path("events"))
        return [
            event
            for event in answer["items"]
            if event["involvedObject"].get("name") == name and reason in ("", event["reason"])
        ]

    async def event(self, name: str, reason: str, seconds: float = 20.0) -> Json:
        """Wait for the first Event with this reason about an object."""

        async def probe() -> list[Json]:
            return await self.events(name, reason)

        found = await eventually(probe, f"Event {reason} of {name}", seconds=seconds)
        return found[0]

    async def kubectl(self, *arguments: str, check: bool = True) -> str:
        """Run kubectl in the namespace."""
        return await self.bed.kubectl("-n", self.namespace, *arguments, check=check)


def phase_of(pod: Mapping[str, Any]) -> str:
    """`status.phase`."""
    return str(pod["status"].get("phase", ""))


def reason_of(pod: Mapping[str, Any]) -> str:
    """`status.reason`; empty if there is none."""
    return str(pod["status"].get("reason", ""))


def state_of(pod: Mapping[str, Any]) -> Json:
    """The state of the first container; empty while it has none."""
    statuses = pod["status"].get("containerStatuses") or [{}]
    return dict(statuses[0].get("state") or {})


def waiting_reason(pod: Mapping[str, Any]) -> str:
    """Why the first container waits; empty if it does not."""
    return str(state_of(pod).get("waiting", {}).get("reason", ""))
