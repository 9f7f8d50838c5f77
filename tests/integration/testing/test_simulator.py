"""The parts of a simulator, put together as a plugin author would: a back door and a command."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from signal import SIGINT, SIGTERM
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from vk_provider.testing.simulator.account import Account, ContainerBehaviour
from vk_provider.testing.simulator.back_door import add_routes, find
from vk_provider.testing.simulator.clock import Clock
from vk_provider.testing.simulator.faults import Faults, ScriptedFault
from vk_provider.testing.simulator.ledger import Charge, Owner
from vk_provider.testing.simulator.serving import add_flags, read_options
from vk_provider.testing.simulator.state import CallRecord, SimulatorOptions, SimulatorState

Ask = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Machine:
    """What the invented service rents."""

    id: str
    owner: Owner


class Model(Account[ContainerBehaviour, Charge]):
    """Machines that nothing ever happens to."""

    def settle(self, now: float) -> None:
        """Nothing is due."""


@dataclass
class State(SimulatorState[Model, ScriptedFault, CallRecord]):
    """One running simulator."""

    machines: list[Machine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = Clock(speed=0)
        self.model = Model(ContainerBehaviour())
        self.faults = Faults(ScriptedFault, {"slow": "waits latencyMs"}, {})


def end(state: State, request: web.Request, _: Mapping[str, Any]) -> Any:
    """``POST /_sim/machines/{id}/end``."""
    machine = find(state.machines, request.match_info["id"], "machine")
    state.model.ledger.close(machine.id, state.clock.now())
    return {"machine_id": machine.id}


@pytest.fixture
def state() -> State:
    """Two machines that bill one pod."""
    owner = Owner("uid-1", "cluster-1", "node-1", "default/app-1")
    made = State(machines=[Machine(name, owner) for name in ("a", "b")])
    for machine in made.machines:
        made.model.ledger.open(Charge(machine.id, 3.6, made.clock.now(), machine.owner))
    for operation in ("create", "list"):
        made.note(CallRecord(len(made.requests), operation, made.clock.now()))
    return made


@pytest.fixture
def carried_out() -> list[str]:
    """A mark for every order that was carried out."""
    return []


@pytest.fixture
async def ask(state: State, carried_out: list[str]) -> AsyncIterator[Ask]:
    """``await ask(method, path, body)``: the JSON of an answer that must be good."""
    app = web.Application()
    add_routes(app, state, [("POST", "/machines/{id}/end", end)], lambda: carried_out.append("."))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as session:

        async def call(method: str, path: str, body: Any = None, status: int = 200) -> Any:
            async with session.request(method, path, json=body) as answer:
                assert answer.status == status, await answer.text()
                is_json = answer.content_type == "application/json"
                return await answer.json() if is_json else await answer.text()

        yield call
    await runner.cleanup()


@pytest.mark.parametrize("path", ["/", "/_sim"])
async def test_the_back_door_says_what_it_can_be_told(ask: Ask, path: str) -> None:
    """With every key, and what is the simulator's own."""
    said = (await ask("GET", path)).splitlines()

    assert "POST /_sim/machines/{id}/end." in said
    assert "POST /_sim/behaviours {match, runSeconds, logLines, logEverySeconds}." in said
    (faults,) = (line for line in said if line.startswith("POST /_sim/faults"))
    assert "holdMs, latencyMs, seed}" in faults


async def test_faults_are_scripted_read_and_removed(ask: Ask) -> None:
    """In camelCase; the seed is no part of one."""
    made = await ask("POST", "/_sim/faults", {"kind": "slow", "latencyMs": [1, 2], "seed": 3})
    shown = await ask("GET", "/_sim/faults")

    assert (made["latencyMs"], made["fired"]) == ([1, 2], 0)
    assert shown == {"faults": [made], "kinds": {"slow": "waits latencyMs"}}
    assert (await ask("DELETE", f"/_sim/faults/{made['id']}"))["faults"] == []
    await ask("POST", "/_sim/faults", {"kind": "slow"})
    assert (await ask("DELETE", "/_sim/faults"))["faults"] == []


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/_sim/faults", {"kind": "explode"}, 400, "'explode'; known: slow"),
        ("/_sim/faults", {}, 400, "kind is missing; known: slow"),
        ("/_sim/faults", {"kind": "slow", "cuont": 1}, 400, "['cuont']; known: ['count',"),
        ("/_sim/faults", {"kind": "slow", "latencyMs": 3}, 400, ""),
        ("/_sim/faults", ["slow"], 400, "must be a JSON object"),
        ("/_sim/behaviours", {"runs": 1}, 400, "'runSeconds'"),
        ("/_sim/clock/advance", {"seconds": -1}, 400, "0 or more"),
        ("/_sim/clock/advance", {}, 400, "seconds"),
        ("/_sim/machines/none/end", {}, 404, "no living machine has the id"),
    ],
)
async def test_a_wrong_order_is_refused_with_a_sentence(
    ask: Ask, carried_out: list[str], path: str, body: Any, status: int, words: str
) -> None:
    """With what is known instead, and nothing follows from it."""
    assert words in (await ask("POST", path, body, status))["error"]
    assert carried_out == []


async def test_behaviours_are_rules_or_the_default(ask: Ask, state: State) -> None:
    """The newest rule wins, until they are cleared."""
    for seconds in (5, 6):
        await ask("POST", "/_sim/behaviours", {"match": "x", "runSeconds": seconds})
    await ask("POST", "/_sim/behaviours", {"runSeconds": 7, "logLines": ["up"]})

    assert state.model.behaviour("x:1", {}).run_seconds == 6
    assert state.model.behaviour("y:1", {}) == ContainerBehaviour(7, ("up",))
    await ask("DELETE", "/_sim/behaviours")
    assert state.model.behaviour("x:1", {}).run_seconds == 7


async def test_the_bill_follows_the_clock(ask: Ask, carried_out: list[str]) -> None:
    """An own order finds an instance by its pod's UID too."""
    before = (await ask("GET", "/_sim/clock"))["now"]
    after = await ask("POST", "/_sim/clock/advance", {"seconds": 1000})
    ended = await ask("POST", "/_sim/machines/uid-1/end")

    bill = await ask("GET", "/_sim/ledger")

    assert after["now"] - before == pytest.approx(1000)
    assert after["text"].endswith("Z")
    assert ended == {"machineId": "a"}
    assert [each["instance"] for each in bill["open"]] == ["b"]
    assert bill["charges"][0]["owner"]["podUid"] == "uid-1"
    assert (bill["usd"], bill["doubleBilled"][0]["seconds"]) == (2.0, pytest.approx(1000))
    assert len(carried_out) == 4


async def test_calls_are_shown_from_a_number_on(ask: Ask) -> None:
    """Whoever looks again sees what is new."""
    shown = [await ask("GET", f"/_sim/requests{query}") for query in ("", "?after=0")]

    assert [[each["operation"] for each in some["requests"]] for some in shown] == [
        ["create", "list"],
        ["list"],
    ]


async def test_a_pause_ends_when_the_simulator_closes(state: State) -> None:
    """Nobody waits for an answer that was to be held back."""
    await state.pause(0)
    waiting = asyncio.create_task(state.pause(3600))
    state.closing.set()

    await asyncio.wait_for(waiting, 10)


def test_flags_become_options() -> None:
    """By their names; what is no option is left out."""
    parser = ArgumentParser()
    add_flags(parser, SimulatorOptions(page_size=7), 8080, "machines")
    parser.add_argument("--log-level", default="info")

    options = read_options(SimulatorOptions, parser.parse_args(["--create-latency-ms", "50-500"]))

    assert options == SimulatorOptions(port=8080, page_size=7, create_latency_ms=(50, 500))


_PROGRAM = """
from vk_provider.testing.simulator.serving import add_flags, command, serve_until_told
from vk_provider.testing.simulator.state import SimulatorOptions

command(
    "acme",
    lambda parser: add_flags(parser, SimulatorOptions(), 8080, "machines"),
    lambda arguments: serve_until_told(f"acme on {arguments.port}", "http://door"),
)
"""


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
async def test_a_command_says_where_it_is_and_ends_when_told(number: int) -> None:
    """With exit code 0."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _PROGRAM, stdout=pipe)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            said = [(await process.stdout.readline()).decode() for _ in range(3)]
            process.send_signal(number)
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert said[0] == "acme on 8080\n"
    assert "curl -s http://door/_sim/ledger" in said[1]
