"""Birth marks survive the limits of tags."""

from __future__ import annotations

import re

import pytest
from vk_provider_modal.stamp import (
    Mark,
    app_name,
    cluster_tags,
    read_mark,
    sandbox_name,
    stamp_tags,
)

from vk_provider.pods.types import IMPLICIT_OFFER, Offer, PodUID, Stamp
from vk_provider.testing.builders import make_stamp


@pytest.mark.parametrize("name", ["app-1", "x" * 253, "a_b/ü.é" * 30, "_"])
def test_a_mark_comes_back_as_it_went(name: str) -> None:
    """However long, and whatever is in it."""
    stamp = Stamp(name, name, "default", name, PodUID("uid-1"))
    offer = Offer("x", gpu_type="B200+", data_center="us-east", usd_per_hour=1.5)

    tags = stamp_tags(stamp, "main", offer, (80, 8000))

    assert read_mark(tags) == Mark(stamp, "main", "B200+", "us-east", 1.5, (80, 8000))
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,63}", value) for value in tags.values())
    assert cluster_tags(name).items() <= tags.items()


def test_what_is_not_known_is_not_there() -> None:
    """An offer without anything leaves no tag."""
    tags = stamp_tags(make_stamp(), "main", IMPLICIT_OFFER, ())

    assert set(tags) == {"vk.cluster", "vk.node", "vk.ns", "vk.pod", "vk.uid", "vk.container"}
    assert read_mark(tags) == Mark(make_stamp(), "main")


@pytest.mark.parametrize("change", [{"vk.uid": ""}, {"vk.node": "_ZZ"}, {"vk.pod": "_FF"}])
def test_a_broken_mark_is_none(change: dict[str, str]) -> None:
    """It is nobody's."""
    assert read_mark(stamp_tags(make_stamp(), "main", IMPLICIT_OFFER, ()) | change) is None


def test_names_hold_the_uid_as_far_as_modal_lets_them() -> None:
    """Others become a hash; either is the same each time."""
    assert sandbox_name(PodUID("0b5c")) == "vk-0b5c"
    assert app_name("0b5c") == "vk-provider-0b5c"
    assert sandbox_name(PodUID("x" * 99)) == sandbox_name(PodUID("x" * 99))
    assert len(app_name("a/b")) <= 64
