"""TokenReview and SubjectAccessReview through the API server.

Fed by ``auth``; feeds the API server through the one call it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from vk_provider.faults import KubeError
from vk_provider.kube import paths
from vk_provider.pods.types import Json
from vk_provider.server.access import AccessAttributes, Identity, with_authenticated


class Creates(Protocol):
    """The part of the API client that a review needs."""

    async def create(self, path: str, body: Json) -> Mapping[str, Any]:
        """POST an object and answer what the API server made of it. Raises ``KubeError``."""


MOST_AT_ONCE = 6
"""Of each kind: strangers with invented tokens must leave connections to the pods' own calls, and
those who are known must not wait behind strangers."""


class KubeReviewer:
    """Asks the API server; every answer that is not plain is a failed review."""

    def __init__(self, client: Creates) -> None:
        self._client = client
        self._tokens = asyncio.Semaphore(MOST_AT_ONCE)
        self._rights = asyncio.Semaphore(MOST_AT_ONCE)

    async def token_review(self, token: str) -> Identity | None:
        """Whose token it is; None if the API server does not know it."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        async with self._tokens:
            answer = await self._client.create(paths.token_reviews(), body)
        status = _status(answer, "TokenReview")
        user = status.get("user")
        if status.get("authenticated") is not True:
            return None
        if not isinstance(user, Mapping) or not user.get("username"):
            raise KubeError("the API server's TokenReview names no user")
        return Identity(
            user=user["username"],
            groups=with_authenticated(user.get("groups") or ()),
            uid=user.get("uid") or "",
            extra=tuple(
                (key, tuple(values)) for key, values in sorted((user.get("extra") or {}).items())
            ),
        )

    async def access_review(self, attributes: AccessAttributes) -> bool:
        """Whether the API server's authorizers allow it."""
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": access_review_spec(attributes),
        }
        async with self._rights:
            answer = await self._client.create(paths.subject_access_reviews(), body)
        status = _status(answer, "SubjectAccessReview")
        return status.get("allowed") is True and status.get("denied") is not True


def access_review_spec(attributes: AccessAttributes) -> dict[str, Any]:
    """The question as the API server takes it: cluster-scoped, about this node alone."""
    identity = attributes.identity
    return {
        "user": identity.user,
        "groups": list(identity.groups),
        "uid": identity.uid,
        "extra": {key: list(values) for key, values in identity.extra},
        "resourceAttributes": {
            "verb": attributes.verb,
            "group": "",
            "version": "v1",
            "resource": "nodes",
            "subresource": attributes.subresource,
            "name": attributes.node_name,
        },
    }


def _status(answer: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    status = answer.get("status")
    if not isinstance(status, Mapping):
        raise KubeError(f"the API server answered a {kind} without a status")
    return status
