"""Which tokens a pod projects, and when each is to be renewed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vk_provider.pods.tokens import DEFAULT_SECONDS, Token, TokenWish, wishes
from vk_provider.testing.builders import make_pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def projecting(*sources: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod with one projected volume."""
    parts = [{"serviceAccountToken": source} for source in sources]
    other = {"configMap": {"name": "conf"}}
    volumes = [{"name": "v", "projected": {"sources": [other, *parts]}}]
    return make_pod(volumes=[{"name": "e", "emptyDir": {}}, *volumes], **spec)


def test_a_token_is_asked_for_as_the_volume_says() -> None:
    """Audience and life are its own, the account is the pod's."""
    pod = projecting({"audience": "vault", "expirationSeconds": 600}, serviceAccountName="robot")

    assert wishes(pod) == {TokenWish("default", "robot", "vault", 600)}


def test_defaults_are_those_of_the_api() -> None:
    """The account every namespace has, and an hour."""
    assert wishes(projecting({"path": "t"})) == {
        TokenWish("default", "default", "", DEFAULT_SECONDS)
    }
    assert wishes(make_pod()) == frozenset()


def test_the_life_that_means_a_year_is_never_asked_for() -> None:
    """What admission injects would be stretched by the API server."""
    (found,) = wishes(projecting({"path": "token", "expirationSeconds": 3607}))

    assert found.seconds == 3600


@pytest.mark.parametrize(("life", "renewed"), [(600, 480), (3600, 2880), (864000, 86400)])
def test_renewal_is_at_four_fifths_and_daily_at_least(life: int, renewed: int) -> None:
    """As a kubelet does it."""
    token = Token.issued("secret", NOW, NOW + timedelta(seconds=life))

    assert token.renew_at == NOW + timedelta(seconds=renewed)
    assert "secret" not in repr(token)
