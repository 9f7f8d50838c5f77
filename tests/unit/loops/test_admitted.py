"""Who holds how much of the node."""

from __future__ import annotations

from fractions import Fraction

from vk_provider.loops.admitted import Admitted
from vk_provider.pods.types import PodUID
from vk_provider.testing.builders import make_container, make_pod

A, B = PodUID("a"), PodUID("b")
POD = make_pod(containers=[make_container(resources={"requests": {"cpu": "500m"}})])


def test_the_sum_is_kept_up_to_date() -> None:
    """Adding twice counts once, and everybody sees what the others hold."""
    admitted = Admitted()
    admitted.add(A, POD)
    admitted.add(A, POD)
    admitted.add(B, POD)
    assert admitted.held_by_others(A)["cpu"] == Fraction(1, 2)
    assert admitted.held_by_others(PodUID("new"))["cpu"] == 1
    admitted.remove(A)
    admitted.remove(A)
    assert admitted.held_by_others(B)["cpu"] == 0


def test_a_pod_holds_what_it_was_resized_to() -> None:
    """What grows in place is held, or the node would run more than its capacity."""
    admitted = Admitted()
    admitted.add(A, POD)
    grown = make_container(resources={"requests": {"cpu": "7"}})
    admitted.add(A, make_pod(containers=[grown], metadata={"generation": 2}))
    assert admitted.held_by_others(B) == {"cpu": 7, "pods": 1}


def test_a_pod_whose_requests_can_not_be_read_holds_its_place() -> None:
    """Nonsense in a quantity must not let it pass for nothing."""
    admitted = Admitted()
    nonsense = make_container(resources={"requests": {"cpu": "a lot"}})
    admitted.add(A, make_pod(containers=[nonsense]))
    assert admitted.held_by_others(B) == {"pods": 1}
