"""The acts of the demo, in order. Each shows something and raises DemoError if it is not so.

Fed by ``stage``; told by ``__main__`` which misfortunes to leave out, so that a test can see that
the demo notices.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.demo.show import Show
from tests.demo.stage import NODE, DemoError, Stage

REPLICAS = 8
GROWN = 10
NAME = "inference"
UNAVAILABLE = "vk-provider.dev/unavailable"

DEPLOYMENT = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {NAME}}}
spec:
  replicas: {REPLICAS}
  selector: {{matchLabels: {{app: {NAME}}}}}
  template:
    metadata: {{labels: {{app: {NAME}}}}}
    spec:
      tolerations: [{{key: virtual-kubelet.io/provider, operator: Exists}}]
      containers:
        - name: server
          image: vllm/vllm-openai:v0.11.0
          args: ["--model", "Qwen/Qwen3-8B"]
          ports: [{{containerPort: 8000, name: http}}]
          resources: {{limits: {{nvidia.com/gpu: "1"}}}}
"""


@dataclass(frozen=True, slots=True)
class Script:
    """Which misfortunes happen. All do, except in tests of the demo itself."""

    kill: bool = True
    refusal: bool = True


Act = Callable[[Stage, Show, Script], Awaitable[None]]


async def node_ready(stage: Stage, show: Show, _: Script) -> None:
    """The node registers and is Ready."""
    show.act("A node that is not there registers")
    await stage.until("node Ready", lambda: _is_ready(stage))
    await show.kubectl("get", "nodes", "-o", "wide")


async def deployment_runs(stage: Stage, show: Show, _: Script) -> None:
    """A Deployment of eight replicas becomes Running on it."""
    show.act(f"A Deployment of {REPLICAS} replicas runs on it")
    show.text(DEPLOYMENT.strip())
    await stage.bed.apply(DEPLOYMENT)
    await stage.until(f"{REPLICAS} pods Running", lambda: _runs(stage, REPLICAS))
    await show.kubectl("get", "pods", "-o", "wide")
    billing = len((await stage.ask_backend("/ledger"))["open"])
    _expect(billing == REPLICAS, f"{REPLICAS} instances billing, found {billing}")


async def node_described(stage: Stage, show: Show, _: Script) -> None:
    """``kubectl describe node`` shows backends, price and door."""
    show.act("What runs where, at what price: kubectl describe node")
    await stage.until("the node tells of its instances", lambda: _tells(stage, REPLICAS))
    described = await show.kubectl("describe", "node", NODE)
    for word in ("vk-provider.dev/door", "USD/h", "ProviderReady", "InternalIP"):
        _expect(word in described, f"{word} in the description of the node")


async def logs_read(stage: Stage, show: Show, _: Script) -> None:
    """``kubectl logs`` reads the instance's log."""
    show.act("Logs come from the backend")
    pod = (await stage.running())[0]["metadata"]["name"]
    printed = await show.kubectl("logs", pod, "--tail=3", "--timestamps")
    _expect(bool(printed.strip()), "at least one line of log")


async def instance_dies(stage: Stage, show: Show, script: Script) -> None:
    """One instance dies: its pod is Failed, Kubernetes replaces it."""
    show.act("An instance dies: its pod fails, and Kubernetes replaces it")
    victim = (await stage.running())[0]["metadata"]
    if script.kill:
        await stage.ask_backend(f"/pods/{victim['uid']}/kill", {"how": "vanish"})
        show.say(f"killed the instance of {victim['name']} behind everybody's back")
    reason = await stage.until(
        f"pod {victim['name']} Failed", lambda: _failed_reason(stage, victim["uid"]), 30
    )
    _expect(reason == "ProviderLost", f"reason ProviderLost, found {reason}")
    await stage.until("the replacement Running", lambda: _runs(stage, REPLICAS))
    await show.kubectl("get", "pods", "-o", "wide")


async def door_closes(stage: Stage, show: Show, script: Script) -> None:
    """No capacity: the door closes first, then pods fail; it reopens by itself."""
    show.act("No capacity anywhere: the door closes, so that nothing storms it")
    if script.refusal:
        await stage.ask_backend("/faults", {"kind": "no-capacity"})
        show.say("from now on the backend refuses every create: no capacity")
    await stage.bed.kubectl("scale", "deployment", NAME, f"--replicas={GROWN}")
    value = await stage.until("the node closes", lambda: _closed(stage), 20)
    _expect(value == "capacity", f"taint {UNAVAILABLE}=capacity, found {value}")
    await stage.until("a pod Failed OutOfCapacity", lambda: _count(stage, "OutOfCapacity"), 20)
    node = await stage.node()
    show.say(f"taints: {', '.join(_taints(node))}")
    allocatable = int(node["status"]["allocatable"]["pods"])
    _expect(allocatable < 64, f"allocatable pods lowered below 64, found {allocatable}")
    show.say(f"allocatable pods: {allocatable} of {node['status']['capacity']['pods']}")
    await show.kubectl("get", "pods")
    failed = await _count(stage, "OutOfCapacity")
    _expect(failed <= 8, f"a handful of Failed pods, found {failed}")

    show.act("Capacity is back: the door reopens, one pod first")
    await stage.ask_backend("/faults", {}, method="DELETE")
    await stage.until("all replicas Running", lambda: _runs(stage, GROWN))
    await stage.until("the door is open", lambda: _open(stage))
    await show.kubectl("get", "pods")


async def nothing_left(stage: Stage, show: Show, _: Script) -> None:
    """Scaled to zero, nothing is left and nothing bills."""
    show.act("Scaled to zero: nothing is left, nobody pays")
    await stage.bed.kubectl("scale", "deployment", NAME, "--replicas=0")
    await stage.until("no pod Running", lambda: _gone(stage))
    ledger = await stage.until("an empty ledger", lambda: _empty_ledger(stage))
    twice = ledger["doubleBilled"]
    _expect(not twice, f"no pod billed twice, found {twice}")
    await show.kubectl("get", "pods")
    show.say(f"the bill: {show.bill(ledger)}; open: 0; billed twice: 0")


ACTS: tuple[Act, ...] = (
    node_ready,
    deployment_runs,
    node_described,
    logs_read,
    instance_dies,
    door_closes,
    nothing_left,
)


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise DemoError(f"expected: {what}")


async def _is_ready(stage: Stage) -> bool:
    nodes: list[dict[str, Any]] = (await stage.bed.get_json("/api/v1/nodes"))["items"]
    ours = [node["status"] for node in nodes if node["metadata"]["name"] == NODE]
    conditions = [each for status in ours for each in status.get("conditions", [])]
    return {"Ready": "True"}.items() <= {
        each["type"]: each["status"] for each in conditions
    }.items()


async def _runs(stage: Stage, replicas: int) -> bool:
    return len(await stage.running()) == replicas


async def _tells(stage: Stage, instances: int) -> bool:
    annotations: dict[str, str] = (await stage.node())["metadata"]["annotations"]
    return annotations.get("vk-provider.dev/running-instances") == str(instances)


async def _failed_reason(stage: Stage, uid: str) -> str | None:
    for pod in await stage.pods():
        if pod["metadata"]["uid"] == uid and pod["status"]["phase"] == "Failed":
            return str(pod["status"].get("reason"))
    return None


async def _count(stage: Stage, reason: str) -> int:
    return sum(pod["status"].get("reason") == reason for pod in await stage.pods())


async def _closed(stage: Stage) -> str | None:
    taints = (await stage.node())["spec"].get("taints", [])
    return next((taint["value"] for taint in taints if taint["key"] == UNAVAILABLE), None)


async def _open(stage: Stage) -> bool:
    return await _closed(stage) is None


async def _gone(stage: Stage) -> bool:
    return all(pod["status"]["phase"] == "Failed" for pod in await stage.pods())


async def _empty_ledger(stage: Stage) -> dict[str, Any] | None:
    ledger: dict[str, Any] = await stage.ask_backend("/ledger")
    return None if ledger["open"] else ledger


def _taints(node: dict[str, Any]) -> list[str]:
    return [
        f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"
        for taint in node["spec"].get("taints", [])
    ]
