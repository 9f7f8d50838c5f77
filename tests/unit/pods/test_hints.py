"""Wishes are read exactly or refused by name; a placement belongs to one UID."""

from typing import Any

import pytest

from vk_provider.pods import hints
from vk_provider.pods.types import Placement, PlacementHints, PodUID


def annotated(uid: str = "u1", **wishes: str) -> dict[str, Any]:
    """A pod with our annotations; underscores stand for hyphens."""
    named = {f"vk-provider.dev/{key.replace('_', '-')}": text for key, text in wishes.items()}
    return {"metadata": {"uid": uid, "annotations": named}}


def test_every_wish_is_read() -> None:
    """Lists keep their order and lose their blanks and repetitions."""
    pod = annotated(
        gpu_types="NVIDIA L40S, NVIDIA A40,, NVIDIA L40S",
        min_gpu_memory="40Gi",
        max_price="$1.25",
        backends='["runpod-secure", "modal"]',
        data_centers="EU-RO-1",
    )

    assert hints.hints(pod) == (
        PlacementHints(
            gpu_types=("NVIDIA L40S", "NVIDIA A40"),
            min_gpu_memory_gib=40,
            max_usd_per_hour=1.25,
            backends=("runpod-secure", "modal"),
            data_centers=("EU-RO-1",),
        ),
        (),
    )


def test_no_annotation_means_no_wish() -> None:
    """Nor is anything wrong with it."""
    assert hints.hints({}) == (PlacementHints(), ())
    assert hints.uid({}) == ""


def test_a_memory_in_decimal_units_is_rounded_up_to_gib() -> None:
    """80G is 74.5 GiB; less than it is not enough."""
    found, _ = hints.hints(annotated(min_gpu_memory="80G"))

    assert found.min_gpu_memory_gib == 75


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        ("min_gpu_memory", "40"),
        ("min_gpu_memory", "lots"),
        ("max_price", "cheap"),
        ("max_price", "-1"),
        ("max_price", "0"),
        ("max_price", "inf"),
        ("max_price", "nan"),
        ("gpu_types", "[1, 2]"),
        ("backends", '["a"'),
        ("backends", "[" * 100_000),
    ],
)
def test_a_wish_that_cannot_be_read_is_named(wish: str, text: str) -> None:
    """With its field path, what was found and what is allowed."""
    found, problems = hints.hints(annotated(**{wish: text}))

    assert found == PlacementHints()
    assert problems[0].path == f"metadata.annotations[vk-provider.dev/{wish.replace('_', '-')}]"
    assert problems[0].message.startswith(f'found "{text}"'[:60])
    assert "allowed: " in problems[0].message


def test_a_placement_survives_the_round_trip() -> None:
    """Whatever characters an offer's id has."""
    placed = Placement(PodUID("u1"), "runpod-secure", 'NVIDIA A100/"1"@EU')

    assert hints.placement(annotated(placement=hints.render_placement(placed))) == placed


def test_a_placement_tells_why_and_what() -> None:
    """For people, and for the next pod of the same ordinal; nonsense in it does no harm."""
    placed = Placement(PodUID("u1"), "b", "o", "1 USD/h", "L40S", "EU-RO-1", 0.99)

    read = hints.placement(annotated(placement=hints.render_placement(placed)))
    assert read is not None
    assert (read.why, read.gpu_type, read.data_center, read.usd_per_hour) == (
        "1 USD/h", "L40S", "EU-RO-1", 0.99,
    )  # fmt: skip
    odd = '{"podUID": "u1", "backend": "b", "offer": "o", "gpuType": 1, "dataCenter": [],'
    read = hints.placement(annotated(placement=odd + '"usdPerHour": "x", "why": null}'))
    assert read == Placement(PodUID("u1"), "b", "o")
    assert read is not None
    assert (read.why, read.gpu_type, read.data_center, read.usd_per_hour) == ("", None, None, None)


def test_any_gpu_comes_after_those_named() -> None:
    """Alone it is no wish at all."""
    named = hints.hints(annotated(gpu_types="L40S, Any"))[0]
    assert (named.gpu_types, named.any_gpu) == (("L40S",), True)
    assert hints.hints(annotated(gpu_types="any"))[0] == PlacementHints()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"podUID": "u1"}',
        '{"podUID": "u1", "backend": "b", "offer": 4}',
        '{"podUID": "another", "backend": "b", "offer": "o"}',
    ],
)
def test_a_placement_of_another_pod_or_of_no_sense_is_ignored(text: str) -> None:
    """It is only a hint where to look."""
    assert hints.placement(annotated(placement=text)) is None
