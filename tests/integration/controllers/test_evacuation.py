"""Making room over an API server: what is written, what is kept, and what a new leader knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.controllers.bench import START
from tests.integration.loops.memory_api import MemoryApi, MemoryClient
from tests.support.loop_clock import LoopClock
from vk_provider.bursting import names
from vk_provider.bursting.evacuation import EvacuationLimits
from vk_provider.bursting.limits import HomecomingLimits
from vk_provider.bursting.moves import LAST_COST, Phase, Relocation, Scaler
from vk_provider.bursting.picture import Selection
from vk_provider.controllers.admission_checks import CONTROLLER
from vk_provider.controllers.cluster_view import ClusterView
from vk_provider.controllers.evacuation import Evacuation, EvacuationRules
from vk_provider.controllers.means import ControllerMeans
from vk_provider.kube.events import EventRecorder
from vk_provider.metrics import Metrics

pytestmark = pytest.mark.looptime

GPU = "nvidia.com/gpu"
KUEUE = "kueue.x-k8s.io"
CHECK = "make-room"
SURGING = Relocation(Phase.SURGING, 1, 2, START)
Json = dict[str, Any]


@pytest.fixture
def api() -> MemoryApi:
    """One home node with one GPU, one replica on it, and a job that wants the node."""
    api = MemoryApi()
    put = api.store.put
    put("apigroups", _meta(KUEUE) | {"preferredVersion": {"version": "v1beta2"}})
    ready = [{"type": "Ready", "status": "True"}]
    put("nodes", _meta("home", spec={}, status={"allocatable": {GPU: "1"}, "conditions": ready}))
    labels = {"type": "virtual-kubelet"}
    put("nodes", _meta("burst", labels=labels, spec={}, status={"conditions": ready}))
    put("deployments", _deployment(None))
    owner = {"kind": "Deployment", "name": "chat", "uid": "chat", "controller": True}
    put("replicasets", _meta("rs", "web", ownerReferences=[owner]))
    put("pods", _replica("a", "home"))
    put("admissionchecks", _meta(CHECK, spec={"controllerName": CONTROLLER}))
    put("admissionchecks", _meta("others", spec={"controllerName": "somebody.else/check"}))
    put("workloads", _workload())
    return api


def _meta(name: str, namespace: str = "", **rest: Any) -> Json:
    metadata = {"name": name, "uid": name}
    if namespace:
        metadata["namespace"] = namespace
    for key in ("labels", "annotations", "ownerReferences"):
        if key in rest:
            metadata[key] = rest.pop(key)
    return {"metadata": metadata, **rest}


def _deployment(state: Relocation | None, replicas: int = 1) -> Json:
    annotations = {names.EVACUATION: state.to_json()} if state is not None else {}
    status = {"updatedReplicas": replicas, "replicas": replicas}
    return _meta("chat", "web", annotations=annotations, spec={"replicas": replicas}, status=status)


def _replica(name: str, node: str) -> Json:
    owner = {"kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
    pod = _meta(name, "web", labels={names.BURST_LABEL: "true"}, ownerReferences=[owner])
    resources = {"limits": {GPU: "1"}}
    pod["spec"] = {"nodeName": node, "containers": [{"name": "c", "resources": resources}]}
    conditions = [{"type": "Ready", "status": "True"}]
    return pod | {"status": {"phase": "Running", "conditions": conditions}}


def _workload() -> Json:
    container = {"name": "c", "resources": {"limits": {GPU: "1"}}}
    template = {"spec": {"priorityClassName": "training", "containers": [container]}}
    since = START.isoformat()
    return _meta(
        "train",
        "ml",
        spec={"podSets": [{"name": "main", "count": 1, "template": template}]},
        status={
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
            "admissionChecks": [
                {"name": "others", "state": "Pending", "message": "", "lastTransitionTime": since},
                {"name": CHECK, "state": "Pending", "message": "", "lastTransitionTime": since},
            ],
        },
    )


@asynccontextmanager
async def leading(
    api: MemoryApi, deadline: float = 600, **homecoming: Any
) -> AsyncIterator[Metrics]:
    """A leader that makes room, as long as the block."""
    clock = LoopClock(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=1))
    client, metrics = MemoryClient(api), Metrics()
    events = EventRecorder(client, "bench")
    means = ControllerMeans(client, clock, metrics, events, lambda: True, lambda: 0.5)
    view = ClusterView(client, Selection())
    limits = EvacuationLimits(deadline=deadline, topology=True)
    rules = EvacuationRules(limits, HomecomingLimits(**homecoming))
    works = [events.run(), view.run(), Evacuation(means, view, rules).run()]
    running = [asyncio.ensure_future(work) for work in works]
    try:
        yield metrics
    finally:
        for task in running:
            task.cancel()
        for end in await asyncio.gather(*running, return_exceptions=True):
            if isinstance(end, Exception):
                raise end


def replicas(api: MemoryApi) -> int:
    """How many the Deployment asks for."""
    found = api.get("deployments", "chat", "web")
    assert found is not None
    number: int = found["spec"]["replicas"]
    return number


def state(api: MemoryApi) -> Json | None:
    """The annotation of the Deployment."""
    found = api.get("deployments", "chat", "web")
    assert found is not None
    text = found["metadata"]["annotations"].get(names.EVACUATION)
    return json.loads(text) if text else None


def said(api: MemoryApi, check: str = CHECK) -> tuple[str, str]:
    """State and message of a check of the job."""
    found = api.get("workloads", "train", "ml")
    assert found is not None
    [one] = [each for each in found["status"]["admissionChecks"] if each["name"] == check]
    return one["state"], one["message"]


async def test_room_is_made_step_by_step(api: MemoryApi) -> None:
    """Surge, mark, lower, clear, admit; the checks of others stay as they are."""
    async with leading(api) as metrics:
        await asyncio.sleep(20)
        assert (replicas(api), said(api)[0]) == (2, "Pending")
        assert said(api)[1] == "waiting for 1 inference pods to find another place"
        assert metrics.registry.get_sample_value("vk_provider_surge_pods") == 1

        api.store.put("pods", _replica("b", "burst"))
        await asyncio.sleep(20)
        assert replicas(api) == 1
        cost = (api.get("pods", "a", "web") or {})["metadata"]["annotations"][names.DELETION_COST]
        assert cost == LAST_COST
        assert said(api)[0] == "Pending"

        api.store.remove("pods", "web", "a")
        await asyncio.sleep(20)
        assert said(api) == ("Ready", "nobody is in the way")
        assert said(api, "others") == ("Pending", "")
        assert state(api) is None
        assert api.events().count("Surged") == api.events().count("SurgeEnded") == 1


async def test_only_checks_that_name_us_are_minded(api: MemoryApi) -> None:
    """And once is enough."""
    async with leading(api):
        await asyncio.sleep(60)

    minded = (api.get("admissionchecks", CHECK, "") or {})["status"]["conditions"][0]
    assert (minded["type"], minded["status"]) == ("Active", "True")
    assert "status" not in (api.get("admissionchecks", "others", "") or {})
    assert api.count("PATCH", "/admissionchecks/") == 1


async def test_a_new_leader_undoes_nothing_before_it_knows_who_waits(api: MemoryApi) -> None:
    """It is not told for a while which checks are its own."""
    api.store.put("deployments", _deployment(SURGING, 2))
    api.refuse("GET", "/admissionchecks", *[500] * 40)
    async with leading(api):
        await asyncio.sleep(40)
        assert api.count("PATCH", "/deployments/") == 0
        api.refusals.clear()
        await asyncio.sleep(60)
        assert said(api)[0] == "Pending"
        assert (replicas(api), (state(api) or {})["phase"]) == (2, "surging")


async def test_nothing_is_undone_while_kueue_is_away(api: MemoryApi) -> None:
    """A job that does not show is not a job that is gone."""
    async with leading(api):
        await asyncio.sleep(20)
        assert replicas(api) == 2
        api.store.remove("apigroups", "", KUEUE)
        api.refuse("WATCH", "/workloads", *[404] * 9)
        api.refuse("GET", "/workloads", *[404] * 9)
        for watcher in tuple(api.store.watchers):
            watcher.pending.put_nowait(None)
        await asyncio.sleep(60)
        assert replicas(api) == 2


async def test_a_job_that_is_gone_gives_the_surge_back(api: MemoryApi) -> None:
    """Nothing of ours is left."""
    async with leading(api):
        await asyncio.sleep(20)
        api.store.remove("workloads", "ml", "train")
        await asyncio.sleep(20)
        assert (replicas(api), state(api)) == (1, None)


@pytest.mark.parametrize("code", [409, 403, 500])
async def test_a_write_that_fails_is_made_up_for(api: MemoryApi, code: int) -> None:
    """By the next look, wherever it was."""
    for path in ("/deployments/chat", "/pods/a", "/workloads/train/status"):
        api.refuse("PATCH", path, *[code] * 6)
    api.store.put("pods", _replica("b", "burst"))
    async with leading(api):
        await asyncio.sleep(120)
        api.store.remove("pods", "web", "a")
        await asyncio.sleep(60)
    assert (replicas(api), state(api)) == (1, None)
    assert said(api)[0] == "Ready"


async def test_an_autoscaler_is_widened_and_restored(api: MemoryApi) -> None:
    """Its bounds are written down before they change."""
    target = {"kind": "Deployment", "name": "chat"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 1}
    api.store.put("horizontalpodautoscalers", _meta("hpa", "web", spec=spec))

    def bounds() -> Scaler:
        found = (api.get("horizontalpodautoscalers", "hpa", "web") or {})["spec"]
        return Scaler("hpa", found["minReplicas"], found["maxReplicas"])

    async with leading(api):
        await asyncio.sleep(20)
        assert bounds() == Scaler("hpa", 2, 2)
        assert (state(api) or {})["scaler"] == {"name": "hpa", "min": 1, "max": 1}
        api.store.put("pods", _replica("b", "burst"))
        await asyncio.sleep(20)
        assert bounds() == Scaler("hpa", 1, 1)


async def test_kueue_is_told_of_room_seldom(api: MemoryApi) -> None:
    """An annotation on a home node, while a topology keeps a job out that would fit."""
    kept_out = _workload()
    why = {"type": "QuotaReserved", "status": "False", "message": 'topology "host" does not fit'}
    kept_out["status"] = {"conditions": [why]}
    api.store.put("workloads", kept_out)
    api.store.remove("pods", "web", "a")
    async with leading(api):
        await asyncio.sleep(62)
    assert 3 <= api.count("PATCH", "/nodes/home") <= 5
    assert names.ROOM_MADE_AT in (api.get("nodes", "home", "") or {})["metadata"]["annotations"]
