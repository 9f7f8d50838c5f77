"""The seam: what a provider offers beyond the four coroutines is seen from outside."""

from __future__ import annotations

from vk_provider.provider import ProviderTraits, capabilities
from vk_provider.testing.fake import FakeBackend, FakeConfig, FakeProvider


class _Bare:
    """Implements nothing optional."""

    traits = ProviderTraits(list_lag_seconds=0)


def test_capabilities_are_short_words_of_what_is_implemented() -> None:
    """They go into the node's annotations."""
    provider = FakeProvider(FakeBackend(FakeConfig()), "cluster")

    assert {"offers", "watch", "logs"} <= set(capabilities(provider))


def test_a_provider_without_extras_has_no_capabilities() -> None:
    """Missing means HTTP 501 and a sentence, never a guess."""
    assert capabilities(_Bare()) == ()  # type: ignore[arg-type]  # it lacks the protocol on purpose
