"""Places that lose instances."""

from __future__ import annotations

from vk_provider.placement import cooling
from vk_provider.placement.cooling import Losses
from vk_provider.pods.types import Offer

OFFER = Offer("l40s", gpu_type="L40S", data_center="EU")
SPOT = ("b", "L40S", "EU")


def test_two_losses_in_a_row_cool_a_place_down() -> None:
    """One is bad luck; each further one doubles."""
    losses = Losses(first=30.0, cap=100.0)
    losses.lost(SPOT, 0.0, 0.0)
    assert not losses.cooled("b", OFFER, 0.0)
    losses.lost(SPOT, 0.0, 0.5)
    assert losses.cooled("b", OFFER, 32.9)
    assert not losses.cooled("b", OFFER, 33.1)
    losses.lost(SPOT, 100.0, 0.0)
    assert losses.cooled("b", OFFER, 159.0)
    for _ in range(40):
        losses.lost(SPOT, 200.0, 0.0)
    assert not losses.cooled("b", OFFER, 300.5)


def test_other_places_are_not_touched() -> None:
    """Nor is the same type where the data centre is open."""
    losses = Losses()
    losses.lost(SPOT, 0.0, 0.0)
    losses.lost(SPOT, 0.0, 0.0)
    assert not losses.cooled("other", OFFER, 1.0)
    assert not losses.cooled("b", Offer("l40s", gpu_type="L40S"), 1.0)
    assert losses.words("b", 1.0) == "avoided after losses: L40S in EU"
    assert losses.words("other", 1.0) == losses.words("b", 1e6) == ""


def test_a_good_life_clears_a_place() -> None:
    """The count begins anew."""
    losses = Losses()
    losses.lost(("b", None, None), 0.0, 0.0)
    losses.lived(("b", None, None))
    losses.lived(("b", None, None))
    losses.lost(("b", None, None), 0.0, 0.0)
    assert losses.words("b", 1.0) == ""
    losses.lost(("b", None, None), 0.0, 0.0)
    assert losses.words("b", 1.0) == "avoided after losses: CPU"


def test_the_memory_is_bounded() -> None:
    """The place that was not heard of for longest is forgotten first."""
    losses = Losses()
    losses.lost(SPOT, 0.0, 0.0)
    for number in range(cooling.MOST_PLACES):
        losses.lost(("b", None, str(number)), 0.0, 0.0)
    losses.lost(SPOT, 0.0, 0.0)
    assert not losses.cooled("b", OFFER, 1.0)


def test_the_only_backend_without_places_is_not_left() -> None:
    """Otherwise two losses would close the door on everybody."""
    losses = Losses(has_elsewhere=False)
    for _ in range(2):
        losses.lost(("b", None, None), 0.0, 0.0)
        losses.lost(SPOT, 0.0, 0.0)
    assert losses.words("b", 1.0) == "avoided after losses: L40S in EU"
