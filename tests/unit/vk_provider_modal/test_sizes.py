"""Resources in Modal's units."""

from __future__ import annotations

from typing import Any

from vk_provider_modal.sizes import Sizes, sizes

from vk_provider.testing.builders import make_container, make_resolved_pod


def sized(gpu_type: str | None = "H100", **resources: Any) -> Sizes:
    """The sizes of a pod with these resources."""
    pod = make_resolved_pod(containers=[make_container(resources=resources)])
    return sizes(pod, gpu_type)


def test_two_cpus_are_a_core() -> None:
    """Rounded up to a thousandth."""
    assert sized(requests={"cpu": "1"}, limits={"cpu": "1001m"}).cpu == (0.5, 0.501)
    assert sized().cpu == (None, None)
    assert sized(requests={"cpu": "0"}).cpu == (None, None)


def test_memory_is_whole_mebibytes() -> None:
    """Rounded up: a float would be sent as nothing."""
    assert sized(requests={"memory": "1G"}).memory == (954, None)


def test_a_bad_quantity_is_a_problem() -> None:
    """By its path."""
    (problem,) = sized(requests={"cpu": "much"}).problems

    assert problem.path == "spec.containers[0].resources.requests.cpu"


def test_gpus_are_one_string() -> None:
    """With the count where it is more than one."""
    assert sized(limits={"nvidia.com/gpu": "1"}).gpu == "H100"
    assert sized(limits={"nvidia.com/gpu": "4"}).gpu == "H100:4"
    assert sized("A10", limits={"nvidia.com/gpu": "5"}).problems
    assert sized(None, limits={"nvidia.com/gpu": "1"}).problems
    assert sized(limits={"amd.com/gpu": "1"}).problems
