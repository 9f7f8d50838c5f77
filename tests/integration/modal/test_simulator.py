"""The simulator itself: its back door, its limits, its command line."""

from __future__ import annotations

import asyncio
import signal
import sys
from argparse import ArgumentParser
from typing import Any

import aiohttp
import pytest
from vk_provider_modal.provider import ModalProvider
from vk_provider_modal.simulator import Options, Simulator, add_arguments, running

from tests.integration.modal.conftest import Make
from tests.integration.modal.test_creates import create, gpu_pod
from vk_provider.faults import OutcomeUnknownError, ProviderError, ThrottledError, UnavailableError
from vk_provider.pods.types import EndCause, InstancePhase
from vk_provider.provider import ExecRequest
from vk_provider.registry import load_simulator
from vk_provider.testing.builders import CLUSTER_ID, NODE_NAME, make_resolved_pod, uid_of
from vk_provider.testing.contract_client import ScriptedClient
from vk_provider.testing.simulator.serving import read_options


async def ask(simulator: Simulator, method: str, path: str, **body: Any) -> dict[str, Any]:
    """A call of the back door."""
    url = f"{simulator.admin_url}/_sim{path}"
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, json=body or None) as answer,
    ):
        found: dict[str, Any] = await answer.json()
        return {"status": answer.status, **found}


async def test_a_pods_life_as_the_back_door_sees_it(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """By its Kubernetes UID, on the bill and in the record of calls."""
    uid = uid_of("app-1")
    ref = await create(provider, gpu_pod())
    await ask(simulator, "POST", f"/sandboxes/{uid}/logs", line="hello")
    await ask(simulator, "POST", "/clock/advance", seconds=3600)

    killed = await ask(simulator, "POST", f"/sandboxes/{uid}/kill", message="host died")
    ledger = await ask(simulator, "GET", "/ledger")
    listed = await ask(simulator, "GET", "/sandboxes")
    asked = await ask(simulator, "GET", "/requests?after=-1")

    assert killed["status"] == "INTERNAL_FAILURE"
    assert (killed["cluster"], killed["node"]) == (CLUSTER_ID, NODE_NAME)
    assert ledger["usd"] == pytest.approx(1.952, abs=0.01)
    assert (ledger["open"], ledger["doubleBilled"]) == ([], [])
    assert [each["id"] for each in listed["sandboxes"]] == [ref.id]
    assert any(each["podUid"] == uid for each in asked["requests"])
    (seen,) = await provider.list_instances()
    assert (seen.phase, seen.ended_by) == (InstancePhase.ENDED, EndCause.LOST)
    assert "host died" in (seen.message or "")


async def test_behaviours_and_stock_can_be_set(
    provider: ModalProvider, simulator: Simulator
) -> None:
    """For what is made from then on."""
    await ask(simulator, "POST", "/behaviours", queueSeconds=0, logLines=["up"])
    await ask(simulator, "POST", "/behaviours", match="registry.example", runSeconds=5, exitCode=4)
    assert (await ask(simulator, "PUT", "/stock", gpu="H100", free=0))["H100"] == 0
    assert "H100" not in await ask(simulator, "PUT", "/stock", gpu="H100")
    stranger = await ask(simulator, "POST", "/sandboxes", name="theirs")
    ref = await create(provider)
    await ask(simulator, "POST", "/clock/advance", seconds=60)

    (seen,) = await provider.list_instances()

    assert seen.ref == ref
    assert (seen.phase, seen.reason) == (InstancePhase.ENDED, "FAILURE")
    unknown = await ask(simulator, "POST", f"/sandboxes/{stranger['id']}/kill", how="softly")
    assert unknown["status"] == 400
    gone = await ask(simulator, "POST", f"/sandboxes/{stranger['id']}/kill", how="vanish")
    assert gone["name"] == "theirs"


async def test_the_rate_of_creates_can_be_limited(
    make_provider: Make, simulator: Simulator
) -> None:
    """As a workspace's is."""
    options = Options(speed=0, creates_per_second=2, create_burst=1, foreign_sandboxes=2)
    async with running(options) as limited, make_provider(baseUrl=limited.url) as provider:
        await create(provider)
        with pytest.raises(ThrottledError) as raised:
            await create(provider, make_resolved_pod("app-2"))
        assert raised.value.retry_after_seconds == pytest.approx(0.5, abs=0.1)
        limited.state.clock.advance(1)
        await create(provider, make_resolved_pod("app-2"))
        # Somebody else's are of another App.
        assert len(limited.state.model.living) == 4
        assert len(await provider.list_instances()) == 2


async def test_an_honoured_key_gives_the_same_answer_again(make_provider: Make) -> None:
    """Which the provider must not rely on: it sends no create twice."""
    async with running(Options(speed=0, create_latency_ms=(5, 10))) as simulator:
        async with make_provider(baseUrl=simulator.url) as provider:
            simulator.state.faults.add("unavailable-after", count=1)
            with pytest.raises(OutcomeUnknownError):
                await create(provider)
        creates = [e for e in simulator.state.requests if e.operation.startswith("SandboxCreate")]

    assert len(creates) == 1
    assert creates[0].fault == "unavailable-after"


async def test_exec_is_off_unless_it_is_allowed(make_provider: Make) -> None:
    """It runs on the machine of whoever started the simulator."""
    async with (
        running(Options(start_seconds=0)) as simulator,
        make_provider(baseUrl=simulator.url) as provider,
    ):
        ref = await create(provider)
        with pytest.raises(UnavailableError, match="--allow-exec"):
            await provider.exec(ref, ExecRequest("main", ("true",)), ScriptedClient())


async def test_exec_in_what_has_ended_fails(provider: ModalProvider, simulator: Simulator) -> None:
    """With a fault, not with an exit code."""
    ref = await create(provider)
    await provider.delete_instance(ref, 0)

    with pytest.raises(ProviderError):
        await provider.exec(ref, ExecRequest("main", ("true",)), ScriptedClient())


async def test_the_command_line_serves_until_it_is_told_to_stop() -> None:
    """The first line says where."""
    command = [sys.executable, "-m", "vk_provider", "simulate", "modal"]
    process = await asyncio.create_subprocess_exec(
        *command, "--port", "0", "--admin-port", "0", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            line = (await process.stdout.readline()).decode()
        url = line.split("back door: ")[1].strip().rstrip(")")
        async with aiohttp.ClientSession() as session, session.get(f"{url}/clock") as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(process.wait(), 30)

    assert line.startswith("Modal simulator on http://127.0.0.1:")
    assert code == 0


async def test_without_the_extra_a_sentence_says_what_to_install() -> None:
    """When the provider is loaded, not when ours is imported."""
    script = (
        "import sys; sys.modules['modal'] = None\n"
        "import vk_provider.cli\n"
        "from vk_provider.faults import ConfigError\n"
        "from vk_provider.registry import load\n"
        "try: load('modal')\n"
        "except ConfigError as error: print(error)"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )

    said, _ = await asyncio.wait_for(process.communicate(), 60)

    assert "pip install 'vk-provider[modal]'" in said.decode()


def test_flags_become_options(capsys: pytest.CaptureFixture[str]) -> None:
    """And a wrong one is refused by name."""
    parser = ArgumentParser()
    load_simulator("modal").add_arguments(parser)
    words = ["--token", "ak:as", "--create-latency-ms", "50-500", "--allow-exec"]

    options = read_options(Options, parser.parse_args(words))

    assert options.tokens == ("ak", "as")
    assert options.create_latency_ms == (50, 500)
    assert options.runs_exec
    for wrong in (["--token", "ak"], ["--create-latency-ms", "soon"]):
        with pytest.raises(SystemExit, match="2"):
            parser.parse_args(wrong)
        assert f"argument {wrong[0]}: " in capsys.readouterr().err
    other = ArgumentParser()
    add_arguments(other)
    assert read_options(Options, other.parse_args([])).tokens is None
