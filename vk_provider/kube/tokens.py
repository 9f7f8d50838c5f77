"""Tokens of the home cluster's ServiceAccounts, each bound to its pod: the API server takes them
back with it.

Asked for by TokenRequest, kept while the pod is ours, and asked for anew at 80 % of their life.
Fed by ``loops.preparation`` with pods; feeds ``pods.resolve``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from vk_provider.faults import ForbiddenError, KubeUnavailableError
from vk_provider.kube import paths
from vk_provider.kube.client import KubeClient
from vk_provider.pods.tokens import Token, TokenWish, wishes
from vk_provider.pods.types import Json, PodUID

_RIGHTS = "apply component service-account-tokens, or set serviceAccountTokens.enabled to false"


class TokenSource:
    """The tokens of all pods, by pod and wish. ``now`` tells the time."""

    def __init__(self, client: KubeClient, now: Callable[[], datetime]) -> None:
        self._client = client
        self._now = now
        self._held: dict[PodUID, dict[TokenWish, Token]] = {}

    async def of(self, pod: Json) -> Mapping[TokenWish, str]:
        """All tokens that the pod projects, each good for a while. Raises ``KubeError``."""
        uid = PodUID(pod["metadata"]["uid"])
        held = self._held.get(uid, {})
        found: dict[TokenWish, Token] = {}
        for each in sorted(wishes(pod)):
            token = held.get(each)
            is_good = token is not None and self._now() < token.renew_at
            found[each] = token if token and is_good else await self._ask(pod, each)
        if found:
            self._held[uid] = found
        return {each: token.value for each, token in found.items()}

    def is_due(self, uid: PodUID) -> bool:
        """Whether a token of the pod is to be renewed."""
        return any(self._now() >= token.renew_at for token in self._held.get(uid, {}).values())

    def release(self, uid: PodUID) -> None:
        """The pod needs its tokens no more."""
        self._held.pop(uid, None)

    async def _ask(self, pod: Json, wanted: TokenWish) -> Token:
        metadata = pod["metadata"]
        bound = {
            "apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"],
        }  # fmt: skip
        spec: dict[str, Any] = {"expirationSeconds": wanted.seconds, "boundObjectRef": bound}
        if wanted.audience:
            spec["audiences"] = [wanted.audience]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = paths.token_requests(wanted.namespace, wanted.service_account)
        now = self._now()
        try:
            answer = await self._client.create(path, body)
        except ForbiddenError as fault:
            raise ForbiddenError(f"{fault}; {_RIGHTS}", fault.code, fault.reason) from fault
        return _read(answer, now)


def _read(answer: Json, now: datetime) -> Token:
    status = answer.get("status") or {}
    try:
        return Token.issued(
            status["token"], now, datetime.fromisoformat(status["expirationTimestamp"])
        )
    except (KeyError, ValueError):
        # The original could carry the token, so it is not chained.
        message = "the answer to a TokenRequest has no token, or no time when it expires"
        raise KubeUnavailableError(message, reason="GarbledAnswer") from None
