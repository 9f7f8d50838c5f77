"""``vk-provider doctor kueue``: reads what a cluster's Kueue is made of, and tells what is wrong.

What can't be read for want of rights is told and left out, except for what nothing can be said
without. Fed by the API server; feeds :mod:`vk_provider.bursting.kueue_preflight`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vk_provider.arguments import namespace_name
from vk_provider.bursting.checkup import Advice, Level
from vk_provider.bursting.kueue_preflight import (
    CheckState,
    KueueFacts,
    PriorityClass,
    TrainingSet,
    examine,
)
from vk_provider.bursting.picture import HomeNode, Picture, Selection, VirtualNode
from vk_provider.bursting.quota_objects import flavor_view, queue_view
from vk_provider.bursting.reading import node_view, pod_view, workload_view
from vk_provider.doctor.report import tell
from vk_provider.faults import ForbiddenError, KubeError, KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.credentials import load_credentials
from vk_provider.pods.types import Json
from vk_provider.settings_bursting import BurstingSettings
from vk_provider.settings_file import load_settings
from vk_provider.yaml_documents import parse_documents

GROUP = "/apis/kueue.x-k8s.io"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_CONFIGURATION_KEY = "controller_manager_config.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where Kueue itself runs."""
    parser.add_argument(
        "--kueue-namespace",
        type=namespace_name,
        default="kueue-system",
        help="of its manager (default: kueue-system)",
    )


async def run(arguments: argparse.Namespace) -> int:
    """Look and tell. Raises KubeError where the cluster can't be asked."""
    settings = (load_settings(arguments.file).bursting if arguments.file else None) or _USUAL
    kubeconfig = Path(arguments.kubeconfig) if arguments.kubeconfig else None
    credentials = await load_credentials(kubeconfig, arguments.context)
    async with KubeClient(credentials) as client:
        reader = _Reader(client, settings.selection)
        check = settings.admission_check
        facts = replace(
            await reader.facts(arguments.kueue_namespace),
            makes_room=check.enabled and check.topology,
        )
        advice = examine(facts, settings.selection, datetime.now(UTC))
    return tell([*advice, *reader.denied])


_USUAL = BurstingSettings()


class _Reader:
    """One look at one cluster."""

    def __init__(self, client: KubeClient, selection: Selection) -> None:
        self.denied: list[Advice] = []
        self._client = client
        self._selection = selection

    async def facts(self, kueue_namespace: str) -> KueueFacts:
        """Everything, or only that there is no Kueue."""
        version = await self._version()
        if not version:
            return KueueFacts("")
        base, resource = f"{GROUP}/{version}", self._selection.resource
        found, _ = await self._client.list(paths.nodes())
        nodes = [node_view(one, resource) for one in found]
        pods = await self._all(paths.pods())
        inference = [one for one in pods if self._selection.is_inference(pod_view(one, resource))]
        return KueueFacts(
            version=version,
            flavors=[flavor_view(one) for one in await self._all(f"{base}/resourceflavors")],
            queues=[queue_view(one) for one in await self._all(f"{base}/clusterqueues")],
            training=list(self._training(await self._all(f"{base}/workloads"))),
            classes={one.name: one for one in _classes(await self._all(PRIORITY_CLASSES))},
            checks=[_check(one) for one in await self._all(f"{base}/admissionchecks")],
            picture=Picture(
                virtual=[one for one in nodes if isinstance(one, VirtualNode)],
                pods=[pod_view(one, resource) for one in inference],
            ),
            nodes=[one for one in nodes if isinstance(one, HomeNode)],
            inference_schedulers=frozenset(_schedulers(inference)),
            manager=await self._manager(kueue_namespace),
        )

    async def _version(self) -> str:
        try:
            group = await self._client.get(GROUP)
        except KubeNotFoundError:
            return ""
        return str((group.get("preferredVersion") or {}).get("version") or "")

    async def _all(self, path: str) -> Sequence[Json]:
        """A collection; an empty one, and a word about it, where we may not look."""
        try:
            items, _ = await self._client.list(path)
        except ForbiddenError as fault:
            self._note(path.rpartition("/")[2], fault)
            return ()
        return items

    def _note(self, subject: str, fault: KubeError) -> None:
        what = f"could not be read: {fault}"
        self.denied.append(Advice(Level.WARNING, subject, what, "grant list, or run it as another"))

    def _training(self, workloads: Sequence[Json]) -> Iterator[TrainingSet]:
        for workload in workloads:
            view = workload_view(workload, self._selection.resource)
            if view.is_finished or view.is_inference or not view.gpus:
                continue
            name = f"{view.namespace}/{view.name}"
            for pods in workload["spec"].get("podSets") or ():
                template = (pods.get("template") or {}).get("spec") or {}
                yield TrainingSet(
                    workload=name,
                    priority_class=template.get("priorityClassName") or "",
                    scheduler=template.get("schedulerName") or "",
                    wants_topology=bool(pods.get("topologyRequest")),
                )

    async def _manager(self, namespace: str) -> Json | None:
        """The manager's configuration, out of the ConfigMap that its manifests make."""
        try:
            maps, _ = await self._client.list(paths.config_maps(namespace))
        except (ForbiddenError, KubeNotFoundError):
            return None
        texts = [(one.get("data") or {}).get(_CONFIGURATION_KEY) for one in maps]
        text = next((one for one in texts if one), None)
        documents = parse_documents(_CONFIGURATION_KEY, text or "", [])
        found: Any = documents[0].value if documents else None
        return found if isinstance(found, dict) else None


def _classes(found: Sequence[Json]) -> Iterator[PriorityClass]:
    for one in found:
        preempts = one.get("preemptionPolicy") != "Never"
        yield PriorityClass(one["metadata"]["name"], int(one.get("value") or 0), preempts)


def _check(check: Json) -> CheckState:
    spec, status = check.get("spec") or {}, check.get("status") or {}
    conditions = status.get("conditions") or ()
    active = any(one["type"] == "Active" and one["status"] == "True" for one in conditions)
    return CheckState(check["metadata"]["name"], spec.get("controllerName") or "", active)


def _schedulers(pods: Sequence[Json]) -> Iterator[str]:
    for pod in pods:
        yield (pod.get("spec") or {}).get("schedulerName") or "default-scheduler"
