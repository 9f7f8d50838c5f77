"""The simulated service's states, without a socket."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from modal_proto import api_pb2
from vk_provider_modal.simulator.model import (
    STATUSES,
    Behaviour,
    End,
    Model,
    RefusalError,
    SimulatedSandbox,
    Wish,
    usd_per_hour,
)

from vk_provider.testing.simulator.account import Rule

NOW = 1_800_000_000.0
UID = {"vk.uid": "uid-1"}


def wish(name: str = "vk-1", gpu: str = "", timeout: int = 3600, **fields: Any) -> Wish:
    """What a sandbox is asked to be."""
    resources = api_pb2.Resources(gpu_config=api_pb2.GPUConfig(gpu_type=gpu, count=1 if gpu else 0))
    definition = api_pb2.Sandbox(name=name, timeout_secs=timeout, resources=resources)
    return Wish("ap-1", definition, fields.pop("tags", UID), **fields)


def made(model: Model, asked: Wish, now: float = NOW) -> SimulatedSandbox:
    """A sandbox with ids of its own."""
    number = len(model.sandboxes)
    return model.create((f"sb-{number}", f"ta-{number}"), asked, now)


def test_a_sandbox_queues_starts_and_reaches_its_limit() -> None:
    """Billed from the machine to the end."""
    model = Model(default=Behaviour(queue_seconds=10, start_seconds=5))
    sandbox = made(model, wish())

    model.settle(NOW + 5)
    assert sandbox.placed_at is None
    assert not model.ledger.open_intervals()
    model.settle(NOW + 12)
    assert not sandbox.is_started(NOW + 12)
    assert sandbox.is_started(NOW + 16)
    model.settle(NOW + 4000)
    assert sandbox.end is not None
    assert STATUSES[sandbox.end.status] == "TIMEOUT"
    (charge,) = model.ledger.charges
    assert charge.seconds(NOW + 9999) == pytest.approx(3605)


@pytest.mark.parametrize(("code", "status"), [("0", "SUCCESS"), ("3", "FAILURE")])
def test_a_manifest_rehearses_its_own_end(code: str, status: str) -> None:
    """By two variables."""
    model = Model()
    env = {"SIMULATE_RUN_SECONDS": "10", "SIMULATE_EXIT_CODE": code}
    sandbox = made(model, wish(env=env))

    model.settle(NOW + 100)

    assert sandbox.end is not None
    assert (STATUSES[sandbox.end.status], sandbox.end.exit_code) == (status, int(code))


def test_a_name_is_taken_while_its_sandbox_lives() -> None:
    """In the same App."""
    model = Model()
    first = made(model, wish())
    with pytest.raises(RefusalError, match="already exists"):
        made(model, wish())

    model.finish(first, End(1, NOW))

    assert made(model, wish()).id != first.id


def test_limited_stock_makes_others_wait() -> None:
    """Until one ends."""
    model = Model(stock={"H100": 1})
    first, second = made(model, wish("a", "H100")), made(model, wish("b", "H100"))
    assert (first.placed_at is not None, second.placed_at) == (True, None)

    model.finish(first, End(3, NOW + 50))
    model.settle(NOW + 60)

    assert second.placed_at == NOW + 60
    assert model.ledger.double_billed() == []


def test_a_start_that_fails_costs_nothing() -> None:
    """And says why."""
    model = Model(rules=[Rule("bad", Behaviour(start_failure="no such file"))])
    sandbox = made(model, wish(image={"reference": "bad:1"}))

    assert sandbox.end is not None
    assert sandbox.end.message == "no such file"
    assert model.ledger.charges == []


def test_lists_lag_both_ways() -> None:
    """Ended ones are shown on demand, vanished ones never."""
    model = Model(list_lag_seconds=5)
    first, second = made(model, wish("a")), made(model, wish("b"))
    assert model.listed(NOW + 1, finished=False) == []
    assert model.listed(NOW + 6, finished=False) == [second, first]

    model.finish(first, End(3, NOW + 6))
    model.vanish(second, NOW + 6)

    assert model.listed(NOW + 7, finished=False) == [first]
    assert model.listed(NOW + 20, finished=False) == []
    assert model.listed(NOW + 20, finished=True) == [first]
    with pytest.raises(RefusalError):
        model.get(second.id, NOW)


def test_a_larger_sandbox_costs_more() -> None:
    """By GPU, cores and memory."""
    small, gpu = wish(), wish(gpu="H100")
    large = replace(small, definition=api_pb2.Sandbox())
    large.definition.resources.milli_cpu = 8000
    large.definition.resources.memory_mb = 65536

    assert usd_per_hour(small) < usd_per_hour(large) < usd_per_hour(gpu)
    assert usd_per_hour(gpu) == pytest.approx(3.95, abs=0.02)
