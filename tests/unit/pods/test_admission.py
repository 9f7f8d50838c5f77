"""A bound pod is admitted again: capacity, affinity, permanent taints, in the kubelet's order."""

from fractions import Fraction
from typing import Any

import pytest

from vk_provider.pods.admission import AdmittingNode, Refusal, admit

TAINT = {"key": "virtual-kubelet.io/provider", "value": "vk-provider", "effect": "NoSchedule"}
PREFERENCE = {"key": "vk-provider.dev/prefer-home", "effect": "PreferNoSchedule"}
CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "2", "nvidia.com/gpu": "1"}


def pod(tolerations: Any = None, **requests: Any) -> dict[str, Any]:
    """A pod with one container; it tolerates everything unless told otherwise."""
    everything = [{"operator": "Exists"}]
    containers = [{"resources": {"requests": requests}}]
    wanted = everything if tolerations is None else tolerations
    return {"spec": {"containers": containers, "tolerations": wanted}}


def node(**in_use: int) -> AdmittingNode:
    """A small node of ours."""
    used = {name: Fraction(amount) for name, amount in in_use.items()}
    return AdmittingNode("burst", {"zone": "outside"}, [PREFERENCE, TAINT], CAPACITY, used)


def test_a_pod_that_fits_is_admitted() -> None:
    """Up to the last place."""
    assert admit(pod(cpu="2", memory="8Gi"), node(cpu=2, pods=1)) is None


def test_a_pod_for_another_system_is_refused_first() -> None:
    """With the kubelet's words; a pod that names none, or ours, may come."""
    windows = pod(cpu="9")
    windows["spec"]["os"] = {"name": "windows"}
    linux = pod()
    linux["spec"]["os"] = {"name": "linux"}

    refused = admit(windows, node())

    assert refused is not None
    assert refused.reason == "PodOSNotSupported"
    assert admit(linux, node()) is None


def test_cpu_over_capacity_is_told_in_thousandths() -> None:
    """The kubelet's sentence, to the letter."""
    assert admit(pod(cpu="2500m"), node(cpu=2)) == Refusal(
        "OutOfcpu",
        "Pod was rejected: Node didn't have enough resource: cpu, "
        "requested: 2500, used: 2000, capacity: 4000",
    )


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (admit(pod(cpu="9"), node(pods=2)), "OutOfpods"),
        (admit(pod(memory="9Gi"), node()), "OutOfmemory"),
        (
            admit(pod(**{"nvidia.com/gpu": "1"}), node(**{"nvidia.com/gpu": 1})),
            "OutOfnvidia.com/gpu",
        ),
        (admit(pod(**{"example.com/none": "500m"}), node()), "OutOfexample.com/none"),
    ],
)
def test_every_resource_is_counted_places_first(refused: Refusal | None, reason: str) -> None:
    """One that the node does not have at all is out of it too."""
    assert refused is not None
    assert refused.reason == reason


def test_asking_for_none_of_a_resource_is_no_request() -> None:
    """Even where the node has none of it."""
    assert admit(pod(**{"example.com/none": "0"}), node()) is None


def test_a_quantity_that_cannot_be_read_is_unsupported() -> None:
    """Only a pod that no API server checked can have one."""
    refused = admit(pod(cpu="many"), node())

    assert refused is not None
    assert refused.reason == "Unsupported"
    assert 'found "many"' in refused.message


def test_a_selector_of_another_node_is_node_affinity() -> None:
    """spec.nodeName bypasses the scheduler, not us."""
    elsewhere = pod()
    elsewhere["spec"]["nodeSelector"] = {"zone": "inside"}
    refused = admit(elsewhere, node())

    assert refused == Refusal(
        "NodeAffinity",
        "Pod was rejected: Predicate NodeAffinity failed: "
        "node(s) didn't match Pod's node affinity/selector",
    )


def test_a_permanent_taint_must_be_tolerated_a_preference_need_not() -> None:
    """The taint is named."""
    refused = admit(pod(tolerations=[]), node())

    assert refused is not None
    assert refused.reason == "TaintToleration"
    assert "{virtual-kubelet.io/provider: vk-provider}" in refused.message
