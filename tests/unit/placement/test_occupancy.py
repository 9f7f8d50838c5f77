"""How many pods are at each place."""

from __future__ import annotations

from vk_provider.placement.needs import Place
from vk_provider.placement.occupancy import Occupancy
from vk_provider.pods.types import PodUID

HERE, THERE = Place("a", "EU"), Place("b")
ONE, TWO = PodUID("1"), PodUID("2")


def test_a_pod_is_at_one_place() -> None:
    """It may change, and leave."""
    occupancy = Occupancy()
    occupancy.take(ONE, HERE)
    occupancy.take(ONE, HERE)
    occupancy.take(TWO, HERE)
    assert occupancy.counts() == {HERE: 2}
    occupancy.take(TWO, THERE)
    assert occupancy.counts() == {HERE: 1, THERE: 1}
    occupancy.leave(ONE)
    occupancy.leave(ONE)
    assert occupancy.counts() == {THERE: 1}


def test_a_pod_that_is_ranked_again_is_not_in_its_own_way() -> None:
    """Otherwise it would change places each time."""
    occupancy = Occupancy()
    occupancy.take(ONE, HERE)
    occupancy.take(TWO, HERE)
    assert occupancy.counts(besides=ONE)[HERE] == 1
    assert occupancy.counts(besides=PodUID("3"))[HERE] == 2
    assert occupancy.counts()[HERE] == 2
