"""The scheduler's arithmetic, against numbers worked out by hand."""

from typing import Any

import pytest

from vk_provider.bursting import names
from vk_provider.bursting.opt_in import VIRTUAL
from vk_provider.bursting.scoring import Place, compare, place, requests_of

GPU = "nvidia.com/gpu"
SOFT = {"key": names.PREFER_HOME_TAINT, "effect": "PreferNoSchedule"}
IMAGE = "registry.example/chat:1"


def pod(affinity: bool = True, cpu: str = "4", memory: str = "32Gi") -> dict[str, Any]:
    """A pod of one GPU that prefers what is not virtual."""
    term = {"weight": 100, "preference": {"matchExpressions": [VIRTUAL]}}
    found: dict[str, Any] = {
        "containers": [
            {
                "name": "main",
                "image": IMAGE,
                "resources": {"requests": {"cpu": cpu, "memory": memory, GPU: "1"}},
            }
        ]
    }
    if affinity:
        found["affinity"] = {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    return {"spec": found}


def node(name: str, cpu: str = "40", *taints: dict[str, str], **more: Any) -> dict[str, Any]:
    """A node of 40 cores and 320 GiB unless told otherwise."""
    labels = {"type": "virtual-kubelet"} if name == "burst" else {}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(taints)},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "320Gi", GPU: "8", "pods": "110"},
            **more,
        },
    }


def places(*taints: dict[str, str], held: int = 0, **more: Any) -> list[Place]:
    """Home with so many such pods, and an empty node outside."""
    return [
        place(node("home", **more), [pod()] * held, is_outside=False),
        place(node("burst", "40", *taints), [], is_outside=True),
    ]


def scores(*taints: dict[str, str], affinity: bool = True, held: int = 0) -> dict[str, Any]:
    """Home's and outside's points by plugin."""
    verdict = compare(pod(affinity), places(*taints, held=held))
    assert verdict is not None
    return {score.plugin: (score.home, score.outside) for score in verdict.scores}


def test_preferences_weigh_three_hundred_and_two_hundred() -> None:
    """The soft taint and the affinity; nothing where they are not."""
    both, neither = scores(SOFT), scores(affinity=False)

    assert (both["TaintToleration"], both["NodeAffinity"]) == ((300, 0), (200, 0))
    assert (neither["TaintToleration"], neither["NodeAffinity"]) == ((300, 300), (0, 0))


def test_a_fuller_node_scores_less() -> None:
    """With this pod on it: half of home against a tenth of outside."""
    assert scores(held=4)["NodeResourcesFit"] == pytest.approx((50, 90))
    assert scores(held=4)["NodeResourcesBalancedAllocation"] == pytest.approx((100, 100))


def test_a_lopsided_node_is_less_balanced() -> None:
    """Twice the cores: the standard deviation of 0.05 and 0.1."""
    verdict = compare(pod(), places(cpu="80"))

    assert verdict is not None
    assert {s.plugin: s.home for s in verdict.scores}[
        "NodeResourcesBalancedAllocation"
    ] == pytest.approx(97.5)


def test_images_that_are_there_draw_pods() -> None:
    """One GB on one of two nodes counts half, between 23 MB and 1000 MB."""
    large = {"names": [IMAGE], "sizeBytes": 1000 * 2**20}
    verdict = compare(pod(), places(images=[large]))

    assert verdict is not None
    score = next(score for score in verdict.scores if score.plugin == "ImageLocality")
    assert (round(score.home, 1), score.outside) == (48.8, 0)


def test_spreading_is_only_bounded() -> None:
    """All replicas at home, none outside: two hundred less."""
    verdict = compare(pod(), places(SOFT))

    assert verdict is not None
    assert (verdict.home, verdict.outside) == ("home", "burst")
    assert (verdict.margin, verdict.worst_margin) == (500, 300)


def test_nothing_competes_where_one_side_is_full() -> None:
    """Eight GPUs, eight pods."""
    assert compare(pod(), places(held=8)) is None
    assert compare(pod(), places()[:1]) is None


def test_what_a_pod_does_not_say_is_guessed() -> None:
    """A tenth of a core and 200 MiB a container; nonsense counts for nothing."""
    silent: dict[str, Any] = {"spec": {"containers": [{}, {}]}}
    odd = {"spec": {"containers": [{"resources": {"requests": {"cpu": "much"}}}]}}

    assert float(requests_of(silent)["cpu"]) == 0.2
    assert requests_of(odd) == {}
    assert place({}, [], is_outside=False).name == ""


def test_an_image_without_a_tag_is_the_latest() -> None:
    """As nodes list it."""
    bare = pod()
    bare["spec"]["containers"][0]["image"] = "registry.example:5000/chat"
    large = {"names": ["registry.example:5000/chat:latest"], "sizeBytes": 2000 * 2**20}
    verdict = compare(bare, places(images=[large]))

    assert verdict is not None
    assert next(s.home for s in verdict.scores if s.plugin == "ImageLocality") == 100
