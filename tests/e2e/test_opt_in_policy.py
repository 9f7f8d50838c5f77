"""The webhook's work as admission policies, on a real API server: the same pods come out.

Before Kubernetes 1.36 those of the component for v1beta1.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.controllers import install
from tests.e2e.test_webhook import BURST, EVERYTHING, admitted, is_prepared, pod
from tests.e2e.workloads import Workloads
from tests.rig.access import ApiError
from tests.rig.components import serves_mutating_policies
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually
from tests.rig.recipes import kube_version
from vk_provider.bursting.opt_in import OptInRules, decide

pytestmark = pytest.mark.asyncio(loop_scope="session")

MUTATING = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
VALIDATING = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
GROUP = "/apis/admissionregistration.k8s.io"
COMPONENT = "opt-in-policy" if serves_mutating_policies(kube_version()) else "opt-in-policy-v1beta1"
MUTATING_GROUP = f"{GROUP}/{'v1beta1' if COMPONENT.endswith('v1beta1') else 'v1'}"
OBJECTS = (
    f"{MUTATING_GROUP}/mutatingadmissionpolicybindings/vk-provider-opt-in-pod",
    f"{MUTATING_GROUP}/mutatingadmissionpolicybindings/vk-provider-opt-in-namespace",
    f"{MUTATING_GROUP}/mutatingadmissionpolicies/vk-provider-opt-in",
    f"{GROUP}/v1/validatingadmissionpolicybindings/vk-provider-opt-in",
    f"{GROUP}/v1/validatingadmissionpolicies/vk-provider-opt-in",
)


@pytest_asyncio.fixture(loop_scope="session")
async def policies(control_plane: ControlPlane, workloads: Workloads) -> AsyncIterator[Workloads]:
    """Both policies, in force: the API server takes a while to compile them."""
    await install(control_plane, [COMPONENT], [*MUTATING, *VALIDATING])

    async def in_force() -> bool:
        if not is_prepared(await admitted(workloads, pod(dict(BURST)))):
            return False
        return await refusal(workloads, pod(dict(BURST), tolerations=EVERYTHING)) != ""

    await eventually(in_force, "the policies are in force", seconds=60, interval=0.5)
    yield workloads
    for name in OBJECTS:
        await control_plane.request_json("DELETE", name)


async def refusal(workloads: Workloads, thing: dict[str, Any]) -> str:
    """What the API server says to a pod; empty if it takes it."""
    try:
        await admitted(workloads, thing)
    except ApiError as error:
        return str(error)
    return ""


async def test_pods_come_out_as_the_webhook_leaves_them(policies: Workloads) -> None:
    """The decision itself finds nothing left to do, whatever stood there before."""
    spread: dict[str, Any] = {"podAntiAffinity": {}}
    mine = {"key": "nvidia.com/gpu", "operator": "Exists"}
    wide = {"key": "virtual-kubelet.io/provider", "operator": "Exists"}
    things = [
        pod(dict(BURST)),
        pod({**BURST, "app": "chat"}, affinity=spread, tolerations=[mine]),
        pod(dict(BURST), tolerations=[wide], affinity={"nodeAffinity": {}}),
    ]
    for thing in things:
        stored = await admitted(policies, thing)
        assert is_prepared(stored)
        assert decide(stored, OptInRules()).patch == ()


async def test_a_namespace_opts_its_pods_in(policies: Workloads) -> None:
    """Training, and pods that say no, stay as they are."""
    path = f"/api/v1/namespaces/{policies.namespace}"
    await policies.patch(path, {"metadata": {"labels": dict(BURST)}})
    priority = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "training"},
        "value": 100_000,
    }
    await policies.bed.apply([priority])

    async def opted_in() -> dict[str, Any] | None:
        found = await admitted(policies, pod())
        return found if is_prepared(found) else None

    found = await eventually(opted_in, "the namespace is seen", seconds=20)
    assert found["metadata"]["labels"] == BURST
    refusing = await admitted(policies, pod({"vk-provider.dev/burst": "false"}))
    training = await admitted(policies, pod(priorityClassName="training"))
    await policies.bed.request_json("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/training")
    assert not is_prepared(refusing)
    assert not is_prepared(training)


async def test_what_did_not_opt_in_is_left_alone(policies: Workloads) -> None:
    """Holes and all."""
    stored = await admitted(policies, pod(tolerations=EVERYTHING))

    assert stored["spec"]["tolerations"] == EVERYTHING


@pytest.mark.parametrize(
    ("toleration", "words"),
    [
        ({"operator": "Exists"}, "closed gate"),
        ({"key": "vk-provider.dev/gate", "operator": "Exists"}, "closed gate"),
        ({"operator": "Exists", "effect": "PreferNoSchedule"}, "home would not be preferred"),
    ],
)
async def test_a_hole_is_refused_in_words(
    policies: Workloads, toleration: dict[str, str], words: str
) -> None:
    """With the field, and what is allowed."""
    said = await refusal(policies, pod(dict(BURST), tolerations=[toleration]))

    assert "spec.tolerations: found one that tolerates" in said
    assert words in said
