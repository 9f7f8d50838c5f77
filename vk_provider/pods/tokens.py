"""PURE. The ServiceAccount tokens that a pod's volumes project, and how long each is good for.

Fed by a pod's JSON; feeds ``kube.tokens`` (what to ask the home cluster for) and the translation of
a backend that hands tokens on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from vk_provider.pods.reading import mapping, mappings, number, text
from vk_provider.pods.types import Json

DEFAULT_SECONDS = 3600
"""The API's own default, and what the injected volume means."""
_INJECTED_SECONDS = 3607
"""An API server takes this very number for a client that never reads its token again, and makes the
token valid for a year: nothing that should leave the cluster."""
_RENEW_AT = 0.8
_OLDEST = timedelta(hours=24)
"""A kubelet renews at 80 % of a token's life, and at this age at the latest."""


class TokenWish(NamedTuple):
    """One token as a volume asks for it. An empty audience is the API server's own."""

    namespace: str
    service_account: str
    audience: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the home cluster. Its value is never shown."""

    value: str = field(repr=False)
    renew_at: datetime

    @classmethod
    def issued(cls, value: str, now: datetime, expires_at: datetime) -> Token:
        """One that was issued just now."""
        return cls(value, now + min((expires_at - now) * _RENEW_AT, _OLDEST))


def wish(pod: Json, source: Json) -> TokenWish:
    """What a ``serviceAccountToken`` source of this pod asks for."""
    spec = mapping(pod, "spec")
    seconds = number(source, "expirationSeconds") or DEFAULT_SECONDS
    return TokenWish(
        text(mapping(pod, "metadata"), "namespace"),
        text(spec, "serviceAccountName") or "default",
        text(source, "audience"),
        DEFAULT_SECONDS if seconds == _INJECTED_SECONDS else seconds,
    )


def wishes(pod: Json) -> frozenset[TokenWish]:
    """Every token that the pod's volumes project, the injected one among them."""
    return frozenset(wish(pod, source) for source in _sources(pod))


def _sources(pod: Json) -> Iterator[Json]:
    for _, volume in mappings(mapping(pod, "spec"), "volumes"):
        for _, part in mappings(mapping(volume, "projected"), "sources"):
            if "serviceAccountToken" in part:
                yield mapping(part, "serviceAccountToken")
