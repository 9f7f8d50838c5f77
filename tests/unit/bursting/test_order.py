"""Whose turn it is to come home, and whether it pays."""

from tests.unit.bursting.views import virtual
from vk_provider.bursting.limits import BreakEven
from vk_provider.bursting.order import Candidate, loss, price_of_a_pod, whose_turn

DEAR = virtual("dear", usd_per_hour=8.0, running=2)
CHEAP = virtual("cheap", usd_per_hour=3.0, running=3)
FREE = virtual("free")


def test_a_price_is_that_of_one_pod() -> None:
    """Unknown where nothing runs or nothing is paid."""
    assert price_of_a_pod(DEAR) == 4.0
    assert price_of_a_pod(FREE) is None
    assert price_of_a_pod(virtual(usd_per_hour=0.0, running=2)) is None
    assert price_of_a_pod(virtual(usd_per_hour=1.0)) is None


def test_the_most_expensive_node_returns_first() -> None:
    """Of those that have pods outside and may."""
    all_three = [Candidate(FREE, 1), Candidate(CHEAP, 1), Candidate(DEAR, 1)]

    assert whose_turn(all_three) == "dear"
    assert whose_turn([Candidate(DEAR, 0), *all_three[:2]]) == "cheap"
    assert whose_turn([Candidate(DEAR, 1, may_return=False), *all_three[:2]]) == "cheap"
    assert whose_turn([Candidate(DEAR, 0)]) is None


def test_a_return_is_not_interrupted_by_a_dearer_node() -> None:
    """One at a time: two would count the same slots twice."""
    assert whose_turn([Candidate(CHEAP, 1, is_returning=True), Candidate(DEAR, 1)]) == "cheap"


def test_a_move_must_save_more_than_it_costs() -> None:
    """An hour at 4 USD against half an hour at 4 + 2 and half a dollar."""
    limits = BreakEven(3600, home_usd_per_gpu_hour=1.0, disruption_usd=0.5)

    assert loss(DEAR, 2, 1800, limits) is None
    assert loss(DEAR, 2, 2400, limits) == "a move saves 4.00 USD and costs 4.50 USD"
    assert loss(FREE, 2, 2400, limits) is None
