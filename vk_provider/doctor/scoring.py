"""``vk-provider doctor scoring``: puts harmless probes before the real scheduler and looks.

A probe is a pod like those that burst, with a volume that can't be filled: it is placed, never
started, and deleted at once; it buys nothing. Fed by the API server; the arithmetic is
:mod:`vk_provider.bursting.scoring`, the words are :mod:`vk_provider.bursting.scoring_advice`.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vk_provider.arguments import count, namespace_name, pod_name
from vk_provider.bursting.picture import HomeNode, Picture, Selection, VirtualNode
from vk_provider.bursting.reading import node_view, pod_view
from vk_provider.bursting.scoring import Place, compare, place
from vk_provider.bursting.scoring_advice import Scoring, advise, generic_sample, probe
from vk_provider.bursting.spare import supply
from vk_provider.doctor.report import tell
from vk_provider.doctor.selection import selection_of
from vk_provider.faults import ConfigError, KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.kube.credentials import load_credentials
from vk_provider.pods.types import Json

PLACED_SECONDS = 15.0
LOOK_SECONDS = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many probes, like whom, and where."""
    parser.add_argument("--probes", type=count(1), default=8, help="pods to create (default: 8)")
    parser.add_argument(
        "--pod",
        type=pod_name,
        metavar="NAMESPACE/NAME",
        help="probes are like this pod (default: one that bursts)",
    )
    parser.add_argument(
        "--namespace",
        type=namespace_name,
        default="default",
        help="of the probes (default: default)",
    )


@dataclass(frozen=True, slots=True)
class Wishes:
    """How many probes, like which pod (namespace, name; None: one that bursts), and where."""

    probes: int = 8
    pod: tuple[str, str] | None = None
    namespace: str = "default"


async def run(arguments: argparse.Namespace) -> int:
    """Look and tell. Raises ConfigError, KubeError."""
    selection = selection_of(arguments.file)
    kubeconfig = Path(arguments.kubeconfig) if arguments.kubeconfig else None
    credentials = await load_credentials(kubeconfig, arguments.context)
    wishes = Wishes(arguments.probes, arguments.pod, arguments.namespace)
    async with KubeClient(credentials) as client:
        return tell(advise(await look(client, selection, wishes)))


async def look(client: KubeClient, selection: Selection, wishes: Wishes) -> Scoring:
    """Place the probes and reckon. Raises ConfigError (there is no virtual node), KubeError."""
    nodes, _ = await client.list(paths.nodes())
    pods, _ = await client.list(paths.pods())
    places = _places(nodes, pods, selection)
    if not any(one.is_outside for one in places):
        raise ConfigError(["the cluster has no virtual node: start vk-provider run first"])
    sample = await _sample(client, pods, wishes.pod, selection)
    count = min(wishes.probes, _room(nodes, pods, sample, selection))
    went, stuck = await _Probes(client, sample, wishes.namespace, selection).place(count)
    return Scoring(sample, places, went, stuck, compare(sample, places))


async def _sample(
    client: KubeClient, pods: Sequence[Json], named: tuple[str, str] | None, selection: Selection
) -> Json:
    """The pod that was named, else one that may burst, else one as the webhook makes it."""
    if named:
        return await client.get(paths.pod(*named))
    for pod in pods:
        view = pod_view(pod, selection.resource)
        if selection.is_inference(view) and not view.is_over and view.gpus:
            return pod
    return generic_sample(selection.home, {selection.resource: "1"})


def _places(nodes: Sequence[Json], pods: Sequence[Json], selection: Selection) -> list[Place]:
    found = []
    for node in nodes:
        view = node_view(node, selection.resource)
        is_outside = isinstance(view, VirtualNode)
        if isinstance(view, HomeNode) and not (selection.is_home(view) and view.is_usable):
            continue
        here = [pod for pod in pods if _is_on(pod, view.name)]
        found.append(place(node, here, is_outside))
    return found


def _is_on(pod: Json, node: str) -> bool:
    is_over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return pod["spec"].get("nodeName") == node and not is_over


def _room(nodes: Sequence[Json], pods: Sequence[Json], sample: Json, selection: Selection) -> int:
    """How many probes home has room for: more would have to go outside."""
    views = [node_view(one, selection.resource) for one in nodes]
    picture = Picture(
        home=[one for one in views if isinstance(one, HomeNode)],
        pods=[pod_view(one, selection.resource) for one in pods],
    )
    gpus = max(1, pod_view(sample, selection.resource).gpus)
    return max(0, supply(picture, selection).spare(gpus))


class _Probes:
    """Pods that come and go at once."""

    def __init__(
        self, client: KubeClient, sample: Json, namespace: str, selection: Selection
    ) -> None:
        self._client = client
        self._sample = sample
        self._namespace = namespace
        self._gpus = {selection.resource: "1"}
        self._prefix = f"scoring-probe-{secrets.token_hex(3)}"

    async def place(self, count: int) -> tuple[Counter[str], list[str]]:
        """One after the other, so that each finds home a little fuller; all are deleted."""
        went: Counter[str] = Counter()
        stuck: list[str] = []
        names = [f"{self._prefix}-{number}" for number in range(count)]
        try:
            for name in names:
                node, why = await self._one(name)
                if node:
                    went[node] += 1
                else:
                    stuck.append(why)
        finally:
            for name in names:
                with suppress(KubeNotFoundError):
                    await self._client.delete(paths.pod(self._namespace, name), grace_seconds=0)
        return went, stuck

    async def _one(self, name: str) -> tuple[str, str]:
        body: dict[str, Any] = probe(self._sample, name, self._namespace, self._gpus)
        await self._client.create(paths.pods(self._namespace), body)
        ends = asyncio.get_running_loop().time() + PLACED_SECONDS
        while True:
            view = pod_view(await self._client.get(paths.pod(self._namespace, name)), "")
            if view.node or view.is_unschedulable:
                return view.node, view.unschedulable_why
            if asyncio.get_running_loop().time() > ends:
                return "", f"the scheduler said nothing within {PLACED_SECONDS:.0f} s"
            await asyncio.sleep(LOOK_SECONDS)
