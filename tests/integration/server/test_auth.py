"""Who gets in: certificates, tokens and rights, over real TLS."""

import aiohttp
import pytest
from yarl import URL

from tests.integration.server.bench import Authority, Caller, client_context
from tests.integration.server.conftest import Stage
from vk_provider.server.access import AccessAttributes, Identity

EVERY_PATH = [
    "/healthz",
    "/pods",
    "/runningpods/",
    "/containerLogs/ns/p/c",
    "/exec/ns/p/c",
    "/attach/ns/p/c",
    "/portForward/ns/p",
    "/stats/summary",
    "/metrics",
    "/configz",
    "/no/such/path",
]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("path", EVERY_PATH)
async def test_nobody_gets_nothing(stranger: Caller, path: str) -> None:
    """No identity, no answer, on any path."""
    assert await stranger.get(path) == (401, "Unauthorized")


@pytest.mark.parametrize("path", EVERY_PATH)
async def test_an_unknown_token_gets_nothing(stranger: Caller, path: str) -> None:
    """The API server does not know it."""
    assert await stranger.get(path, headers=bearer("wrong")) == (401, "Unauthorized")


@pytest.mark.parametrize("path", EVERY_PATH)
async def test_a_name_without_rights_gets_nothing(
    stage: Stage, stranger: Caller, path: str
) -> None:
    """Known, but not allowed."""
    stage.judge.tokens["t"] = Identity("nobody-special")
    status, text = await stranger.get(path, headers=bearer("t"))
    assert status == 403
    assert text.startswith("Forbidden (user=nobody-special, verb=")
    assert "resource=nodes" in text


@pytest.mark.parametrize("header", ["Basic YTpi", "Bearer", "Bearer ", "", "Token x"])
async def test_other_schemes_are_nobody(stage: Stage, stranger: Caller, header: str) -> None:
    """And never reach the API server."""
    status, _ = await stranger.get("/pods", headers={"Authorization": header})
    assert status == 401
    assert stage.judge.asked == []


async def test_a_certificate_of_the_client_ca_gets_in(stage: Stage, admin: Caller) -> None:
    """CN is the user, O the groups; no token is reviewed."""
    assert (await admin.get("/pods"))[0] == 200
    question = stage.judge.asked[0]
    assert isinstance(question, AccessAttributes)
    assert question.identity == Identity("admin", ("admins", "system:authenticated"))


async def test_a_strangers_certificate_ends_the_handshake(stage: Stage) -> None:
    """Signed by somebody else's CA."""
    pair = Authority("clients").client(stage.folder, "admin")
    connector = aiohttp.TCPConnector(ssl=client_context(None, pair))
    async with aiohttp.ClientSession(connector=connector) as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"https://127.0.0.1:{stage.port}/pods")
    assert stage.judge.asked == []


async def test_a_token_with_rights_gets_in(stage: Stage, stranger: Caller) -> None:
    """As metrics-server and Prometheus do."""
    stage.judge.tokens["t"] = Identity("scraper")
    stage.judge.rights.add(("scraper", "get", "metrics"))
    assert (await stranger.get("/metrics/resource", headers=bearer("t")))[0] == 200


async def test_the_finer_subresource_is_asked_first(stage: Stage, stranger: Caller) -> None:
    """nodes/pods is enough for /pods; nodes/proxy is only asked if it is not."""
    stage.judge.tokens["t"] = Identity("reader")
    stage.judge.rights.add(("reader", "get", "pods"))

    assert (await stranger.get("/pods", headers=bearer("t")))[0] == 200
    assert (await stranger.get("/configz", headers=bearer("t")))[0] == 403

    asked = [q.subresource for q in stage.judge.asked if isinstance(q, AccessAttributes)]
    assert asked == ["pods", "configz", "proxy"]


@pytest.mark.parametrize("path", ["/exec/ns/p/c", "/attach/ns/p/c", "/portForward/ns/p"])
async def test_get_on_proxy_runs_no_commands(stage: Stage, stranger: Caller, path: str) -> None:
    """A WebSocket arrives as GET and still needs create."""
    stage.judge.tokens["t"] = Identity("reader")
    stage.judge.rights.add(("reader", "get", "proxy"))
    assert (await stranger.get(path, headers=bearer("t")))[0] == 403


@pytest.mark.parametrize(
    "path", ["/%65xec/ns/p/c", "/stats/../exec/ns/p/c", "/stats/%2e%2e/exec/ns/p/c"]
)
async def test_no_spelling_of_a_path_passes_for_another(
    stage: Stage, stranger: Caller, path: str
) -> None:
    """What the router serves is what was judged."""
    stage.judge.tokens["t"] = Identity("scraper")
    stage.judge.rights |= {("scraper", "get", "stats"), ("scraper", "get", "proxy")}
    url = URL(stranger.base + path, encoded=True)
    async with stranger.session.get(url, headers=bearer("t")) as response:
        assert response.status in (400, 403, 404)


async def test_answers_are_remembered(stage: Stage, stranger: Caller) -> None:
    """One review of each kind for many requests."""
    stage.judge.tokens["t"] = Identity("reader")
    stage.judge.rights.add(("reader", "get", "pods"))
    for _ in range(3):
        await stranger.get("/pods", headers=bearer("t"))
    assert len(stage.judge.asked) == 2


async def test_a_denial_is_remembered_for_half_a_minute(stage: Stage, stranger: Caller) -> None:
    """A right that was just granted works soon."""
    stage.judge.tokens["t"] = Identity("reader")
    assert (await stranger.get("/pods", headers=bearer("t")))[0] == 403
    stage.judge.rights.add(("reader", "get", "pods"))
    stage.now = 29
    assert (await stranger.get("/pods", headers=bearer("t")))[0] == 403
    stage.now = 31
    assert (await stranger.get("/pods", headers=bearer("t")))[0] == 200


async def test_a_right_is_remembered_for_five_minutes(stage: Stage, stranger: Caller) -> None:
    """A right that was withdrawn ends, and so does a token."""
    stage.judge.tokens["t"] = Identity("reader")
    stage.judge.rights.add(("reader", "get", "pods"))
    assert (await stranger.get("/pods", headers=bearer("t")))[0] == 200
    stage.judge.rights.clear()
    stage.now = 299
    assert (await stranger.get("/pods", headers=bearer("t")))[0] == 200
    stage.now = 301
    assert (await stranger.get("/pods", headers=bearer("t")))[0] == 403
    stage.judge.tokens.clear()
    stage.now = 500
    assert (await stranger.get("/pods", headers=bearer("t")))[0] == 401


async def test_a_failed_token_review_refuses(stage: Stage, stranger: Caller) -> None:
    """Fail closed, and ask again the next time."""
    stage.judge.tokens["t"] = Identity("reader")
    stage.judge.rights.add(("reader", "get", "pods"))
    stage.judge.broken = True
    assert await stranger.get("/pods", headers=bearer("t")) == (500, "Authentication error")
    stage.judge.broken = False
    assert (await stranger.get("/pods", headers=bearer("t")))[0] == 200


async def test_a_failed_access_review_refuses(stage: Stage, admin: Caller) -> None:
    """With a text that names the question."""
    stage.judge.broken = True
    status, text = await admin.get("/containerLogs/ns/p/c")
    assert status == 500
    assert text == ("Authorization error (user=admin, verb=get, resource=nodes, subresource=proxy)")
