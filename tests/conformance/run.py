"""One run: a control plane, our node with the shipped identity, the suite, its results.

Fed by `__main__`; the node runs as users run it, its kubelet port with authentication on.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.conformance import netns
from tests.conformance.stand_in import stand_in
from tests.rig import audit, identity
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

NODE = "vk-under-test"
POD_TESTS = (
    "TestGetPods",
    "TestPodLifecycleGracefulDelete",
    "TestPodLifecycleForceDelete",
    "TestCreatePodWithOptionalInexistentSecrets",
    "TestCreatePodWithMandatoryInexistentSecrets",
    "TestCreatePodWithOptionalInexistentConfigMap",
    "TestCreatePodWithMandatoryInexistentConfigMap",
)
STATISTICS_TESTS = ("TestGetStatsSummary", "TestGetMetricsResource")
_WATCH_TIMEOUT = "30s"
_RESULT = re.compile(r"^ +--- (PASS|FAIL|SKIP): TestConformance/(\w+) \(([\d.]+)s\)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    """How one test ended."""

    test: str
    outcome: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """What a run found; `refused` are the node's requests that RBAC forbade."""

    results: tuple[Result, ...]
    wanted: tuple[str, ...]
    suite_log: str
    node_log: str
    refused: str

    @property
    def failed(self) -> tuple[str, ...]:
        """The wanted tests that did not pass, those that never ran included."""
        passed = {each.test for each in self.results if each.outcome == "PASS"}
        return tuple(test for test in self.wanted if test not in passed)


def parse(log: str) -> tuple[Result, ...]:
    """The results in the output of `go test -v`."""
    return tuple(Result(test, how, float(took)) for how, test, took in _RESULT.findall(log))


async def run(suite: Path, wanted: Sequence[str]) -> Report:
    """Run these tests of the suite against a node of ours on a fresh control plane."""
    async with ControlPlane() as bed, AsyncExitStack() as stack:
        port = bed.free_port()
        await _start_node(bed, port)
        if set(wanted) & set(STATISTICS_TESTS):
            await _add_node_pod(bed)
            await stack.enter_async_context(stand_in(bed, netns.ADDRESS, port))
        environment = {
            "KUBECONFIG": str(bed.kubeconfig_for_user("conformance", ["system:masters"])),
            "VK_NODE_NAME": NODE,
            "VK_NAMESPACE": "default",
            "VK_WATCH_TIMEOUT": _WATCH_TIMEOUT,
        }
        pattern = f"^TestConformance$/^({'|'.join(wanted)})$"
        command = [
            str(suite),
            "-test.v",
            "-test.count=1",
            "-test.timeout=15m",
            f"-test.run={pattern}",
        ]
        await bed.start("suite", command, environment)
        await bed.wait("suite")
        log = bed.log_file("suite").read_text(errors="replace")
        refused = audit.forbidden(await bed.settled_audit_events(), identity.USER)
        return Report(
            parse(log), tuple(wanted), log, bed.log_tail("node", 40), audit.describe(refused)
        )


async def _start_node(bed: ControlPlane, port: int) -> None:
    kubeconfig = await identity.install(bed)
    pair = bed.serving_pair(netns.ADDRESS, NODE)
    configuration = {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "VirtualNode",
        "metadata": {"name": NODE},
        "spec": {
            "capacity": {"cpu": "100", "memory": "400Gi", "pods": "200"},
            "taints": [],  # the suite's pods tolerate nothing
            "tickSeconds": 1,
            "reach": "direct",  # the suite's Ready wants an address of the pod's own
            "leaderElection": {"namespace": identity.NAMESPACE},
            "server": {
                "address": netns.ADDRESS,
                "port": port,
                "plainPort": bed.free_port(),
                "tls": {"certFile": str(pair.certificate), "keyFile": str(pair.key)},
            },
            # It measures what it runs, and images that can't be pulled are no obstacle.
            "backends": [
                {"name": "local", "provider": "process", "config": {"address": netns.ADDRESS}}
            ],
        },
    }
    file = bed.folder / "node.yaml"
    file.write_text(json.dumps(configuration))  # JSON is YAML
    program = [sys.executable, "-m", "vk_provider", "run"]
    await bed.start("node", [*program, "-f", str(file), "--kubeconfig", str(kubeconfig)])

    async def registered() -> bool:
        return NODE in await bed.kubectl("get", "nodes", "-o", "name")

    await eventually(registered, f"node {NODE} registered")


async def _add_node_pod(bed: ControlPlane) -> None:
    """A Pod named like the Node, with its address; neither scheduler nor node touches it."""
    spec = {
        "schedulerName": "nobody",
        "automountServiceAccountToken": False,
        "containers": [{"name": "kubelet", "image": "none"}],
    }
    path = "/api/v1/namespaces/default/pods"
    await bed.request_json("POST", path, {"metadata": {"name": NODE}, "spec": spec})
    status = {"phase": "Running", "podIP": netns.ADDRESS, "podIPs": [{"ip": netns.ADDRESS}]}
    await bed.request_json(
        "PATCH",
        f"{path}/{NODE}/status",
        {"status": status},
        content_type="application/merge-patch+json",
    )
