"""The packaged policy on the real descheduler, and the checkup that looks at both.

kwok plays the virtual nodes: what is tried here is who is evicted, not where they ran.
"""

from __future__ import annotations

import asyncio
import copy
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from tests.rig import identity
from tests.rig.control_plane import ControlPlane
from tests.rig.descheduler import descheduler
from tests.rig.kwok import Stages
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

DEPLOY = Path(__file__).parents[2] / "deploy" / "descheduler"
ACCOUNT = "vk-provider-descheduler"
PROVIDER = {
    "key": "virtual-kubelet.io/provider",
    "value": "vk-provider",
    "effect": "NoSchedule",
}
GATE, UNAVAILABLE = "vk-provider.dev/gate", "vk-provider.dev/unavailable"
OUTSIDE = "outside-1"
CYCLE_SECONDS = 2.0
QUIET_SECONDS = 3 * CYCLE_SECONDS
WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  replicas: 4
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat, vk-provider.dev/burst: "true"}}
    spec:
      tolerations: [{key: virtual-kubelet.io/provider, operator: Exists}]
      volumes: [{name: shm, emptyDir: {medium: Memory}}]
      containers:
        - name: c
          image: example.invalid/serve
          resources: {limits: {nvidia.com/gpu: "1"}}
"""
Policy = dict[str, Any]


class Town:
    """One bed with a full virtual node, and words about it."""

    def __init__(self, bed: ControlPlane, account: Path) -> None:
        self.bed = bed
        self.account = account

    async def taint(self, *taints: str) -> None:
        """Give the virtual node these taints (`key=value`) beside its own."""
        made = [
            {"key": key, "value": value, "effect": "NoSchedule"}
            for key, _, value in (taint.partition("=") for taint in taints)
        ]
        await self.bed.request_json(
            "PATCH",
            f"/api/v1/nodes/{OUTSIDE}",
            {"spec": {"taints": [PROVIDER, *made]}},
            content_type="application/merge-patch+json",
        )

    async def places(self) -> dict[str, str]:
        """UID and node of each replica that nobody has asked to go."""
        pods = (await self.bed.get_json("/api/v1/namespaces/default/pods"))["items"]
        return {
            pod["metadata"]["uid"]: pod["spec"].get("nodeName", "")
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] != "Failed"
        }

    async def outside(self) -> int:
        """How many replicas are outside."""
        return list((await self.places()).values()).count(OUTSIDE)

    async def fill(self, home: str) -> None:
        """Put all replicas outside, then set how many GPUs home has."""
        await self.taint()
        await self.room("0")
        await self.bed.kubectl("delete", "deployment", "chat", "--ignore-not-found", "--wait=true")
        await self.bed.apply(WORKLOAD)
        await eventually(self._all_outside, "all replicas outside")
        await self.room(home)

    async def room(self, gpus: str) -> None:
        """Set the GPUs of the home node."""
        room = {"allocatable": {"nvidia.com/gpu": gpus}, "capacity": {"nvidia.com/gpu": gpus}}
        await self.bed.request_json(
            "PATCH",
            "/api/v1/nodes/home-1/status",
            {"status": room},
            content_type="application/merge-patch+json",
        )

    @asynccontextmanager
    async def program(self, policy: Policy) -> AsyncIterator[None]:
        """The real descheduler with the shipped rights."""
        async with descheduler(
            self.bed, policy, interval_seconds=CYCLE_SECONDS, kubeconfig=self.account
        ):
            yield
            log = self.bed.log_file("descheduler").read_text()
            assert "forbidden" not in log

    async def _all_outside(self) -> bool:
        return await self.outside() == 4


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def town() -> AsyncIterator[Town]:
    """A bed of its own: deschedulers look at everything."""
    async with ControlPlane(audit=False) as bed:
        await bed.create_namespace("vk-provider")
        account = await identity.install(bed, DEPLOY, name=ACCOUNT)
        training = {"metadata": {"name": "training"}, "value": 100000}
        await bed.request_json("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", training)
        await bed.add_home_node("home-1", {"nvidia.com/gpu": "0"}, stages=Stages(0.5))
        labels = {"type": "virtual-kubelet"}
        room = {"nvidia.com/gpu": "8"}
        await bed.add_home_node(OUTSIDE, room, labels, taints=[PROVIDER])
        await bed.add_home_node("outside-2", room, labels, taints=[PROVIDER])
        await bed.kubectl("cordon", "outside-2")
        yield Town(bed, account)


def shipped() -> Policy:
    """The packaged policy; pods may move at once, and failed ones go at once."""
    policy = copy.deepcopy(yaml.safe_load((DEPLOY / "policy.yaml").read_text()))
    policy["profiles"][0]["pluginConfig"][0]["args"]["minPodAge"] = "1s"
    return dict(policy)


def stock(**arguments: Any) -> Policy:
    """What a descheduler of somebody else's does about taints."""
    evictor = {"podProtections": {"defaultDisabled": ["PodsWithLocalStorage"]}}
    configured = [
        {"name": "DefaultEvictor", "args": evictor},
        {"name": "RemovePodsViolatingNodeTaints", "args": arguments},
    ]
    enabled = {"deschedule": {"enabled": ["RemovePodsViolatingNodeTaints"]}}
    profile = {"name": "stock", "pluginConfig": configured, "plugins": enabled}
    head = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
    return {**head, "profiles": [profile]}


async def stays(town: Town) -> None:
    """Nobody is moved for some cycles."""
    before = await town.places()
    await asyncio.sleep(QUIET_SECONDS)
    assert await town.places() == before


async def test_return_brings_home_two_at_a_time_and_nothing_else_moves_anybody(town: Town) -> None:
    """Neither an open gate, nor `hold`, nor a closed door, nor a full home; then `return` does."""
    await town.fill(home="0")
    await town.taint(f"{GATE}=return")
    async with town.program(shipped()):
        await stays(town)
        await town.room("8")
        for taints in ((f"{GATE}=hold",), (f"{GATE}=hold", f"{UNAVAILABLE}=outage")):
            await town.taint(*taints)
            await asyncio.sleep(CYCLE_SECONDS)  # what was evicted in the cycle of the change
            await stays(town)
        before = set(await town.places())
        await town.taint(f"{GATE}=return")
        await eventually(lambda: _moved(town, before), "two came home", seconds=3 * CYCLE_SECONDS)
        assert len(before & set(await town.places())) == 2
        await eventually(lambda: _home(town), "all came home", seconds=30)


async def test_others_move_nobody_once_they_exclude_our_taints(town: Town) -> None:
    """And they do as long as they don't: the checkup is right to call that an error."""
    await town.fill(home="8")
    await town.taint(f"{GATE}=hold", f"{UNAVAILABLE}=outage")
    async with town.program(stock(excludedTaints=[GATE, UNAVAILABLE])):
        await stays(town)
    async with town.program(stock(excludedTaints=[GATE])):
        await eventually(lambda: _home(town), "a closed door moved all", seconds=20)


async def test_failed_pods_of_ours_are_removed_and_no_others(town: Town) -> None:
    """By reason, after their time, and not those of Jobs."""
    await town.taint()
    ours = await _failed(town, "ours", "OutOfCapacity")
    theirs = await _failed(town, "theirs", "Evicted")
    async with town.program(shipped()):
        await asyncio.sleep(QUIET_SECONDS)
        assert {ours, theirs} <= await _failed_names(town)  # an hour is not over
    policy = shipped()
    policy["profiles"][1]["pluginConfig"][1]["args"]["minPodLifetimeSeconds"] = 1
    async with town.program(policy):
        await eventually(lambda: _is_gone(town, ours), "our failed pod removed", seconds=20)
        assert theirs in await _failed_names(town)


async def test_the_checkup_looks_at_the_cluster(town: Town, tmp_path: Path) -> None:
    """Its own Deployment passes; a stock one beside it and a stuck pod are told."""
    await town.fill(home="8")
    code, printed = await _doctor(town)
    assert code == 1
    assert "no descheduler acts on vk-provider.dev/gate=return" in printed

    objects = await identity.rendered(town.bed, DEPLOY)
    deployment = next(each for each in objects if each["kind"] == "Deployment")
    await town.bed.apply([_at_zero(each) for each in objects])
    code, printed = await _doctor(town)
    assert code == 0, printed
    assert "all of which may come home" in printed

    await town.bed.apply(_stock_objects(deployment))
    await town.bed.apply(STUCK)
    code, printed = await _doctor(town)
    assert code == 1
    flat = " ".join(printed.split())
    assert "our taint vk-provider.dev/unavailable" in flat
    assert "PodDisruptionBudget never never allows an eviction" in flat
    await town.bed.kubectl("delete", "poddisruptionbudget", "never")


STUCK = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: never}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: chat}}}
"""


async def _doctor(town: Town) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "vk_provider", "doctor", "descheduler", "--kubeconfig", str(town.bed.kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, printed.decode()


def _at_zero(found: dict[str, Any]) -> dict[str, Any]:
    """Nothing runs it here."""
    if found["kind"] == "Deployment":
        return {**found, "spec": {**found["spec"], "replicas": 0}}
    return found


def _stock_objects(ours: dict[str, Any]) -> list[dict[str, Any]]:
    """Somebody else's descheduler: our Deployment under another name with another policy."""
    made: dict[str, Any] = json.loads(json.dumps(_at_zero(ours)).replace(ACCOUNT, "stock"))
    spec = made["spec"]["template"]["spec"]
    spec["volumes"] = [{"name": "policy", "configMap": {"name": "stock"}}]
    metadata = {"name": "stock", "namespace": "vk-provider"}
    data = {"policy.yaml": yaml.safe_dump(stock(excludedTaints=[GATE]))}
    policy = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return [made, policy]


async def _moved(town: Town, before: set[str]) -> bool:
    return len(before - set(await town.places())) >= 2


async def _home(town: Town) -> bool:
    places = list((await town.places()).values())
    return places.count("home-1") == 4 and OUTSIDE not in places


async def _failed(town: Town, name: str, reason: str) -> str:
    """A pod of a ReplicaSet on the virtual node that is Failed with a reason."""
    owner = (await town.bed.get_json("/apis/apps/v1/namespaces/default/replicasets"))["items"][0]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": False}
    reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    pod = {
        "metadata": {"name": name, "ownerReferences": [reference]},
        "spec": {
            "nodeName": OUTSIDE,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "example.invalid/x"}],
        },
    }
    await town.bed.request_json("POST", "/api/v1/namespaces/default/pods", pod)
    # Before, kwok would make it Running after all.
    await town.bed.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=30s")
    await town.bed.request_json(
        "PATCH",
        f"/api/v1/namespaces/default/pods/{name}/status",
        {"status": {"phase": "Failed", "reason": reason}},
        content_type="application/merge-patch+json",
    )
    return name


async def _failed_names(town: Town) -> set[str]:
    pods = (await town.bed.get_json("/api/v1/namespaces/default/pods"))["items"]
    return {pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Failed"}


async def _is_gone(town: Town, name: str) -> bool:
    return name not in await _failed_names(town)
