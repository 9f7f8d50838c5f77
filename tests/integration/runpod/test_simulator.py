"""The simulator as people and tests use it: over HTTP, by its back door, and as a command."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from vk_provider_runpod.provider import RunPodProvider
from vk_provider_runpod.simulator import Options, Simulator, running
from vk_provider_runpod.stamp import stamp_env

from tests.integration.runpod.conftest import API_KEY
from tests.integration.runpod.test_provider import create, gpu_pod, only
from vk_provider.pods.types import InstancePhase, LogOptions
from vk_provider.testing.builders import make_stamp

BODY = {"name": "a", "image": "b:1", "gpu": {"id": "NVIDIA L4", "count": 1}}
Call = Callable[..., Awaitable[Any]]


@pytest.fixture
async def call(simulator: Simulator) -> AsyncIterator[Call]:
    """``await call(method, path, body)``: the JSON of an answer that must be good."""
    headers = {"Authorization": f"Bearer {API_KEY}"}
    async with aiohttp.ClientSession(simulator.url, headers=headers) as session:

        async def ask(method: str, path: str, body: Any = None, status: int = 200) -> Any:
            async with session.request(method, path, json=body) as response:
                text = await response.text()
                assert response.status == status, text
                return json.loads(text) if text else None

        yield ask


async def test_a_pod_is_killed_in_every_way(call: Call) -> None:
    """By its own id or by the Kubernetes UID that it carries."""
    env = stamp_env(make_stamp(), "main")
    pod_id = (await call("POST", "/v2/pods", {**BODY, "env": env}, status=201))["id"]
    uid = make_stamp().pod_uid

    async def kill(**how: Any) -> Any:
        await call("POST", f"/_sim/pods/{uid}/kill", how)
        return await call("GET", f"/v2/pods/{pod_id}")

    await call("POST", "/_sim/clock/advance", {"seconds": 60})
    assert (await kill(how="restart"))["runtime"]["uptime"] == 0
    assert (await kill(how="hide-runtime"))["runtime"] is None
    assert "cost" not in await kill(how="hide-fields", fields=["cost"])
    assert (await kill(how="status", status="HIBERNATING"))["status"] == "HIBERNATING"
    assert (await kill(how="status"))["status"] == "RUNNING"
    assert (await kill(how="lock"))["locked"] is True
    assert (await kill(how="error"))["status"] == "ERROR"
    assert (await kill(how="exited"))["status"] == "EXITED"
    await call("POST", f"/_sim/pods/{uid}/kill", {"how": "magic"}, status=400)
    moved = (await call("POST", f"/_sim/pods/{uid}/kill", {"how": "migrate"}))["id"]
    await call("GET", f"/v2/pods/{pod_id}", status=404)
    assert (await call("GET", f"/v2/pods/{moved}"))["env"]["VK_PROVIDER_POD_UID"] == uid
    pod_id = moved
    await call("POST", f"/_sim/pods/{pod_id}/kill")
    await call("GET", f"/v2/pods/{pod_id}", status=404)
    await call("POST", f"/_sim/pods/{pod_id}/kill", status=404)


async def test_every_pod_that_ever_was_is_shown(call: Call) -> None:
    """Without lag or paging, with what no client sees."""
    foreign = await call("POST", "/_sim/pods", {"name": "theirs"})
    pod_id = (await call("POST", "/v2/pods", BODY, status=201))["id"]
    await call("DELETE", f"/v2/pods/{pod_id}", status=204)

    shown = {each["id"]: each for each in (await call("GET", "/_sim/pods"))["pods"]}

    assert set(shown) == {foreign["id"], pod_id}
    assert shown[pod_id]["deletedAt"]
    assert shown[foreign["id"]]["deletedAt"] is None


async def test_stock_runs_out_and_comes_back(call: Call) -> None:
    """In the catalogue and at the till."""
    await call("PUT", "/_sim/stock", {"gpu": "NVIDIA L4", "free": 1})
    query = "/v2/catalog/gpus/NVIDIA%20L4?include=AVAILABILITY&product=POD"
    pod_id = (await call("POST", "/v2/pods", BODY, status=201))["id"]

    refused = await call("POST", "/v2/pods", BODY, status=400)
    assert "no longer any instances" in refused["detail"]
    assert (await call("GET", query))["availability"] == "NONE"
    await call("DELETE", f"/v2/pods/{pod_id}", status=204)
    assert (await call("GET", query))["availability"] == "LOW"
    assert await call("PUT", "/_sim/stock", {"gpu": "NVIDIA L4", "free": None}) == {}


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("PATCH", "options", {"listLagSeconds": "a"}, 'listLagSeconds: found "a", allowed: a numb'),
        ("PATCH", "options", {"apiKey": "x"}, "unknown keys ['apiKey']"),
        ("PUT", "stock", {"gpu": "L4", "free": 1}, 'gpu or cpu: found "L4", allowed: NVIDIA L4,'),
        ("PUT", "stock", {"gpu": "NVIDIA L4", "dataCenter": "X"}, 'dataCenter: found "X", allowed'),
        ("PUT", "stock", {"gpu": "NVIDIA L4", "free": -1}, "free: found -1, allowed: a whole"),
        ("POST", "behaviours", {"pullSeconds": None}, "pullSeconds: found nothing, allowed"),
        ("POST", "faults", {"kind": "error", "count": "x"}, 'count: found "x", allowed: a whole'),
    ],
)
async def test_a_wrong_order_is_told_at_once(
    call: Call, method: str, path: str, body: dict[str, Any], words: str
) -> None:
    """Rather than by a call that breaks later."""
    answer = await call(method, f"/_sim/{path}", body, status=400)

    assert answer["error"].startswith(words)


async def test_the_bill_tells_each_owner(call: Call) -> None:
    """Double billing is found by the stamp."""
    env = stamp_env(make_stamp(), "main")
    for _ in range(2):
        await call("POST", "/v2/pods", {**BODY, "env": env}, status=201)
    await call("POST", "/_sim/clock/advance", {"seconds": 3600})

    bill = await call("GET", "/_sim/ledger")

    assert [each["podUid"] for each in bill["doubleBilled"]] == [make_stamp().pod_uid]
    assert len(bill["open"]) == 2
    assert bill["usd"] == pytest.approx(0.86)


async def test_calls_are_recorded_with_when_they_came_and_whether_they_were_answered(
    call: Call, simulator: Simulator
) -> None:
    """A caller that is killed between the two leaves no answer."""
    await call("POST", "/_sim/faults", {"kind": "hold", "holdMs": 300, "count": 1})
    async with aiohttp.ClientSession(simulator.url) as session:
        headers = {"Authorization": f"Bearer {API_KEY}"}
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(0.1):
                await session.post("/v2/pods", json=BODY, headers=headers)
    await call("GET", "/v2/registries")

    first, *_ = (await call("GET", "/_sim/requests"))["requests"]
    rest = (await call("GET", f"/_sim/requests?after={first['number']}"))["requests"]

    assert (first["operation"], first["answeredAt"], first["fault"]) == ("createPod", None, "hold")
    assert first["instance"] in simulator.state.model.pods
    assert {each["operation"] for each in rest} == {"listRegistries"}


async def test_options_change_while_it_runs(call: Call, simulator: Simulator) -> None:
    """The key is never shown."""
    changed = await call(
        "PATCH",
        "/_sim/options",
        {"listLagSeconds": 5, "createLatencyMs": [1, 2], "dropLogsAfter": 3},
    )

    assert (changed["listLagSeconds"], changed["createLatencyMs"]) == (5, [1, 2])
    assert API_KEY not in json.dumps(changed)
    assert simulator.state.drop_logs_after == 3
    await call("POST", "/v2/pods", BODY, status=201)
    assert (await call("GET", "/v2/pods"))["pods"] == []


async def test_logs_can_be_written_by_hand(
    call: Call, provider: RunPodProvider, simulator: Simulator
) -> None:
    """And are read as the container's."""
    ref = await create(provider)
    simulator.state.clock.advance(30)

    await call("POST", f"/_sim/pods/{ref.id}/logs", {"line": "by hand"})

    lines = [line.text async for line in provider.read_logs(ref, "main", LogOptions())]
    assert lines[-1] == b"by hand"


async def test_edges_refuse_before_anything_else(simulator: Simulator) -> None:
    """No user agent, no key, a wrong key."""
    agent = {"User-Agent": "x"}
    async with aiohttp.ClientSession(simulator.url, skip_auto_headers=["User-Agent"]) as session:
        for headers, status in (
            ({}, 403),
            ({"User-Agent": "Python-urllib/3.11"}, 403),
            (agent, 401),
            ({**agent, "Authorization": "Bearer wrong"}, 401),
        ):
            async with session.get("/v2/pods", headers=headers) as response:
                assert response.status == status
        good = {**agent, "Authorization": f"Bearer {API_KEY}"}
        async with session.get("/v2/nowhere", headers=good) as response:
            assert response.status == 404


async def test_an_update_resets_the_container_and_a_name_does_not(call: Call) -> None:
    """Mount kinds and volumes are fixed."""
    wanted = {"name": "v", "size": 10, "dataCenter": "EU-RO-1"}
    volume = await call("POST", "/v2/network-volumes", wanted, status=201)
    mounts = {"network": [{"volumeId": volume["id"], "path": "/a"}]}
    pod = await call("POST", "/v2/pods", {**BODY, "mounts": mounts}, status=201)
    path = f"/v2/pods/{pod['id']}"
    await call("POST", "/_sim/clock/advance", {"seconds": 60})

    assert (await call("PATCH", path, {"name": "new", "locked": True}))["runtime"]["uptime"] == 55
    assert (await call("PATCH", path, {"env": {"A": "b"}}))["runtime"] is None
    other = {"network": [{"volumeId": "w", "path": "/a"}]}
    await call("PATCH", path, {"mounts": other}, status=400)
    await call("PATCH", path, {"mounts": {"persistent": {"size": 10, "path": "/"}}}, status=400)
    await call("POST", f"{path}/action", {"action": "stop"}, status=409)


async def test_a_real_clock_starts_pods_by_itself(
    make_provider: Callable[..., RunPodProvider],
) -> None:
    """Faster than life, if wished."""
    options = Options(speed=200, pull_seconds=20, create_latency_ms=(1, 5), api_key=API_KEY)
    async with running(options) as fast, make_provider(baseUrl=fast.url) as provider:
        await create(provider, gpu_pod())

        async with asyncio.timeout(10):
            phase = InstancePhase.STARTING
            while phase is not InstancePhase.RUNNING:
                phase = (await only(provider)).phase
                await asyncio.sleep(0.02)


@asynccontextmanager
async def command(*flags: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The simulator as a process, and the first line it says."""
    arguments = ["-m", "vk_provider_runpod.simulator", "--port", "0", *flags]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=pipe)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(20):
            line = (await process.stdout.readline()).decode()
        yield process, line
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_command_says_where_it_is_and_ends_when_told(number: signal.Signals) -> None:
    """With exit code 0, also while somebody waits for an answer."""
    async with command("--foreign-pods", "2", "--create-latency-ms", "50-60") as (process, line):
        url = line.split()[3]
        headers = {"Authorization": "Bearer any"}
        async with (
            aiohttp.ClientSession(url, headers=headers) as session,
            session.get("/v2/pods") as response,
        ):
            assert len((await response.json())["pods"]) == 2
        process.send_signal(number)
        async with asyncio.timeout(10):
            assert await process.wait() == 0


async def test_a_wrong_latency_ends_with_a_sentence() -> None:
    """Which names the flag."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "vk_provider_runpod.simulator", "--create-latency-ms", "slow",
        stderr=pipe,
    )  # fmt: skip
    _, said = await process.communicate()

    assert process.returncode != 0
    assert b"--create-latency-ms" in said
