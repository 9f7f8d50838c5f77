"""How many GPUs a pod needs at once."""

from __future__ import annotations

from typing import Any

from vk_provider.pods.gpus import gpu_request
from vk_provider.testing.builders import make_container, make_pod


def gpus(name: str, count: str, resource: str = "nvidia.com/gpu", **more: Any) -> dict[str, Any]:
    """A container with a GPU limit."""
    return make_container(name, resources={"limits": {resource: count}}, **more)


def test_a_pod_without_gpus_needs_none() -> None:
    """And no resource."""
    assert gpu_request(make_pod()) == (0, None)


def test_containers_add_up_and_init_containers_do_not() -> None:
    """The largest init container counts, beside the sidecars before it."""
    init = [gpus("sidecar", "1", restartPolicy="Always"), gpus("prepare", "4")]
    pod = make_pod(containers=[gpus("a", "1"), gpus("b", "2")], initContainers=init)

    assert gpu_request(pod) == (5, "nvidia.com/gpu")


def test_both_vendors_are_known() -> None:
    """The resource tells which one."""
    assert gpu_request(make_pod(containers=[gpus("a", "2", "amd.com/gpu")])) == (2, "amd.com/gpu")


def test_what_is_no_quantity_is_left_to_admission() -> None:
    """Resolving never raises."""
    assert gpu_request(make_pod(containers=[gpus("a", "two")])) == (0, None)
