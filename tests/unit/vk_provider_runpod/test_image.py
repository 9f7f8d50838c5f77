"""Image references."""

from __future__ import annotations

import pytest
from vk_provider_runpod.image import normalised


@pytest.mark.parametrize(
    "image",
    [
        "nginx",
        "nginx:1.27",
        "library/nginx",
        "ghcr.io/acme/infer:v1.2-rc_3",
        "registry.example:5000/team/app",
        "localhost/app",
        f"quay.io/acme/app@sha256:{'0a' * 32}",
        f"quay.io/acme/app:1@sha256:{'0a' * 32}",
        "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404",
        "acme/my__app.v2--x",
    ],
)
def test_a_valid_reference_stays_as_it_is(image: str) -> None:
    """Hosts, ports, tags and digests included."""
    assert normalised(image) == image


def test_blanks_around_it_are_dropped() -> None:
    """They come from templates."""
    assert normalised(" nginx:1\n") == "nginx:1"


@pytest.mark.parametrize(
    "image",
    [
        "",
        " ",
        "acme/UPPER",
        "a b",
        "nginx:",
        "nginx@sha256:12",
        "http://x/y",
        "-x",
        "a//b",
        "x:ä",
        "x:1:2",
    ],
)
def test_a_malformed_reference_is_none(image: str) -> None:
    """RunPod would refuse it in words that name no field."""
    assert normalised(image) is None
