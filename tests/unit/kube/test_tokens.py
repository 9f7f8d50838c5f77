"""Tokens of the home cluster: bound to their pod, kept while they are good, renewed in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vk_provider.faults import ForbiddenError, KubeError, KubeUnavailableError
from vk_provider.kube.tokens import TokenSource
from vk_provider.testing.builders import make_pod, uid_of

SOURCES = [{"serviceAccountToken": {"path": "t", "audience": "vault", "expirationSeconds": 600}}]
POD = make_pod(volumes=[{"name": "v", "projected": {"sources": SOURCES}}])


class Issuer:
    """An API server that issues numbered tokens; the clock goes when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.asked: list[tuple[str, Any]] = []
        self.fault: KubeError | None = None
        self.answer: dict[str, Any] | None = None
        client: Any = self
        self.source = TokenSource(client, lambda: self.now)

    async def create(self, path: str, body: Any) -> dict[str, Any]:
        """A TokenRequest."""
        self.asked.append((path, body))
        if self.fault is not None:
            raise self.fault
        ends = self.now + timedelta(seconds=body["spec"]["expirationSeconds"])
        status = {"token": f"token-{len(self.asked)}", "expirationTimestamp": ends.isoformat()}
        return {"status": status} if self.answer is None else self.answer


async def test_a_token_is_bound_to_its_pod() -> None:
    """The API server takes it back with the pod."""
    issuer = Issuer()

    (token,) = (await issuer.source.of(POD)).values()

    ((path, body),) = issuer.asked
    assert token == "token-1"
    assert path == "/api/v1/namespaces/default/serviceaccounts/default/token"
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "app-1", "uid": uid_of("app-1")}
    spec = {"audiences": ["vault"], "expirationSeconds": 600, "boundObjectRef": bound}
    assert body["spec"] == spec


async def test_without_an_audience_the_api_server_chooses_its_own() -> None:
    """An empty list would be another thing."""
    issuer = Issuer()
    sources = [{"serviceAccountToken": {"path": "t"}}]

    await issuer.source.of(make_pod(volumes=[{"name": "v", "projected": {"sources": sources}}]))

    assert "audiences" not in issuer.asked[0][1]["spec"]


async def test_a_good_token_is_kept_and_an_old_one_renewed() -> None:
    """At four fifths of its life."""
    issuer = Issuer()
    await issuer.source.of(POD)

    issuer.now += timedelta(seconds=479)
    assert not issuer.source.is_due(uid_of("app-1"))
    assert list((await issuer.source.of(POD)).values()) == ["token-1"]

    issuer.now += timedelta(seconds=1)
    assert issuer.source.is_due(uid_of("app-1"))
    assert list((await issuer.source.of(POD)).values()) == ["token-2"]
    assert not issuer.source.is_due(uid_of("app-1"))


async def test_a_pod_that_is_released_leaves_nothing_behind() -> None:
    """Nor does one that projects no token."""
    issuer = Issuer()
    await issuer.source.of(POD)

    issuer.source.release(uid_of("app-1"))
    issuer.now += timedelta(days=1)

    assert not issuer.source.is_due(uid_of("app-1"))
    assert await issuer.source.of(make_pod("plain")) == {}


async def test_a_missing_right_is_told_with_its_remedy() -> None:
    """The component, or the switch."""
    issuer = Issuer()
    issuer.fault = ForbiddenError("serviceaccounts/token is forbidden", 403)

    with pytest.raises(ForbiddenError, match="component service-account-tokens"):
        await issuer.source.of(POD)


@pytest.mark.parametrize("answer", [{}, {"status": {"token": "hush", "expirationTimestamp": "x"}}])
async def test_a_garbled_answer_is_an_outage_and_never_shown(answer: dict[str, Any]) -> None:
    """It may hold the token."""
    issuer = Issuer()
    issuer.answer = answer

    with pytest.raises(KubeUnavailableError) as raised:
        await issuer.source.of(POD)

    assert "hush" not in str(raised.value)
