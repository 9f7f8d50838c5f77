"""What the API server is asked about callers, and what its answers mean."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from vk_provider.faults import KubeError
from vk_provider.pods.types import Json
from vk_provider.server.access import AccessAttributes, Identity
from vk_provider.server.reviewer import MOST_AT_ONCE, KubeReviewer


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


class SlowApi(Api):
    """One that takes its time with tokens."""

    async def create(self, path: str, body: Json) -> Mapping[str, Any]:
        """Tokens never, rights at once."""
        answer = await super().create(path, body)
        if "token" in path:
            await asyncio.Event().wait()
        return answer


async def test_strangers_do_not_take_all_connections() -> None:
    """Whoever invents tokens leaves some to the pods, and to callers whose rights are asked for."""
    api = SlowApi({"status": {"allowed": True}})
    reviewer = KubeReviewer(api)
    strangers = [asyncio.create_task(reviewer.token_review(str(one))) for one in range(100)]
    await asyncio.sleep(0)
    question = AccessAttributes(Identity("me"), "get", "burst", "metrics")

    assert await reviewer.access_review(question)
    assert len(api.asked) == MOST_AT_ONCE + 1
    for stranger in strangers:
        stranger.cancel()
    await asyncio.wait(strangers)
