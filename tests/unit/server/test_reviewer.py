"""What the API server is asked about callers, and what its answers mean."""

from collections.abc import Mapping
from typing import Any

import pytest

from vk_provider.faults import KubeError
from vk_provider.pods.types import Json
from vk_provider.server.access import AccessAttributes, Identity
from vk_provider.server.reviewer import KubeReviewer


class Api:
    """An API server that gives one answer and remembers the question."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Json]] = []

    async def create(self, path: str, body: Json) -> Mapping[str, Any]:
        """Remember and answer."""
        self.asked.append((path, body))
        return self.answer


async def test_a_known_token_names_its_owner() -> None:
    """With groups, uid and extra."""
    user = {"username": "me", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}
    api = Api({"status": {"authenticated": True, "user": user}})

    found = await KubeReviewer(api).token_review("t")

    assert found == Identity("me", ("g", "system:authenticated"), "7", (("k", ("v",)),))
    assert api.asked[0][0] == "/apis/authentication.k8s.io/v1/tokenreviews"
    assert api.asked[0][1]["spec"] == {"token": "t"}


async def test_an_unknown_token_is_nobodys() -> None:
    """Not an error."""
    assert await KubeReviewer(Api({"status": {"error": "bad"}})).token_review("t") is None


@pytest.mark.parametrize("answer", [{}, {"status": "x"}, {"status": {"authenticated": True}}])
async def test_a_garbled_token_review_fails(answer: Mapping[str, Any]) -> None:
    """Failing closed needs a fault."""
    with pytest.raises(KubeError):
        await KubeReviewer(Api(answer)).token_review("t")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"allowed": True}, True),
        ({"allowed": False}, False),
        ({"allowed": True, "denied": True}, False),
        ({"allowed": "true"}, False),
        ({}, False),
    ],
)
async def test_only_a_plain_yes_is_one(status: Mapping[str, Any], expected: bool) -> None:
    """Everything else refuses."""
    question = AccessAttributes(Identity("me"), "get", "burst", "proxy")
    assert await KubeReviewer(Api({"status": status})).access_review(question) is expected


async def test_the_question_is_about_this_node() -> None:
    """Cluster-scoped nodes/<subresource>, by name."""
    api = Api({"status": {}})
    identity = Identity("me", ("g",), "7", (("k", ("v",)),))

    await KubeReviewer(api).access_review(AccessAttributes(identity, "get", "burst", "metrics"))

    path, body = api.asked[0]
    assert path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert body["spec"] == {
        "user": "me",
        "groups": ["g"],
        "uid": "7",
        "extra": {"k": ["v"]},
        "resourceAttributes": {
            "verb": "get",
            "group": "",
            "version": "v1",
            "resource": "nodes",
            "subresource": "metrics",
            "name": "burst",
        },
    }
