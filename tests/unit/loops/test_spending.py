"""The budget: what is listed, what is reserved, what is left."""

from __future__ import annotations

import math

from vk_provider.loops.spending import Spending
from vk_provider.pods.stimuli import Candidate
from vk_provider.pods.types import Offer, PodUID

A, B = PodUID("a"), PodUID("b")


def offer(price: float | None) -> Candidate:
    """An offer at this price."""
    return Candidate("fake", Offer("o", usd_per_hour=price))


def test_without_a_budget_nothing_is_over() -> None:
    """And nothing needs to be remembered."""
    spending = Spending()
    spending.reserve(A, offer(1000))
    assert spending.left == math.inf
    assert not spending.is_over(offer(1e9))
    assert spending.words([offer(1)]) == ""


def test_a_create_reserves_until_a_list_shows_it() -> None:
    """Many pods at once don't spend the same dollar twice."""
    spending = Spending(10.0)
    spending.reserve(A, offer(6))
    assert spending.is_over(offer(6))
    spending.listed("fake", 6.0, {A})
    assert spending.left == 4.0
    spending.reserve(B, offer(4))
    assert spending.left == 0.0
    spending.release(B)
    spending.listed("other", 1.0, set())
    assert spending.left == 3.0


def test_an_offer_without_a_price_counts_nothing() -> None:
    """Where a backend has no prices, capacity is the cap."""
    spending = Spending(0.0)
    spending.reserve(A, offer(None))
    assert not spending.is_over(offer(None))


def test_the_words_name_the_budget_and_the_cheapest_offer() -> None:
    """For the pod's message and the door's."""
    spending = Spending(5.0)
    spending.listed("fake", 6.0, set())
    assert spending.words([offer(3), offer(2)]) == (
        "the node's budget of 5.00 USD/h has 0.00 left, and the cheapest offer costs 2.00"
    )
    assert spending.words([]) == ""
