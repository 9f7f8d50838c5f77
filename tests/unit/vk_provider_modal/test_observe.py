"""From a sandbox to an observation: statuses decide, numbers lie."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from vk_provider_modal.facts import Result, Sandbox
from vk_provider_modal.observe import is_gone, observe
from vk_provider_modal.stamp import Mark

from vk_provider.pods.types import EndCause, InstancePhase, Observation, Running, Terminated
from vk_provider.testing.builders import make_stamp

START = 1_800_000_000.0
MARK = Mark(make_stamp(), "main", "H100", "us-east", 3.95, (8000,))
RUNNING = Sandbox(
    "sb-1", {}, "vk-1", START - 10, START, 86_400, tunnels={8000: "https://a.example"}
)


def seen(sandbox: Sandbox, after: float = 60, margin: int = 300) -> Observation:
    """The observation so many seconds after the start."""
    return observe(sandbox, MARK, datetime.fromtimestamp(START + after, UTC), margin)


def ended(status: str, exit_code: int = 0, message: str = "", started: bool = True) -> Observation:
    """The observation of an end."""
    sandbox = replace(RUNNING, result=Result(status, exit_code, message))
    return seen(sandbox if started else replace(sandbox, started_at=0))


def state_of(observation: Observation) -> Terminated:
    """The end of its only container."""
    (container,) = observation.containers
    assert isinstance(container.state, Terminated)
    return container.state


def test_a_started_sandbox_runs() -> None:
    """With its end and its addresses told on the pod."""
    found = seen(RUNNING)

    assert found.phase is InstancePhase.RUNNING
    assert found.containers[0].state == Running(datetime.fromtimestamp(START, UTC))
    assert found.annotations == {
        "vk-provider.dev/ends-at": "2027-01-16T08:00:00Z",
        "vk-provider.dev/endpoint-8000": "https://a.example",
    }
    assert (found.gpu_type, found.data_center, found.usd_per_hour) == ("H100", "us-east", 3.95)


def test_time_alone_changes_nothing() -> None:
    """Until the end is near."""
    assert seen(RUNNING, 60) == seen(RUNNING, 80_000)


def test_a_sandbox_that_has_not_started_waits() -> None:
    """Placed or not."""
    assert seen(replace(RUNNING, started_at=0)).phase is InstancePhase.STARTING


@pytest.mark.parametrize(("code", "reason"), [(0, "Completed"), (3, "Error")])
def test_a_containers_own_end_has_its_code(code: int, reason: str) -> None:
    """And no other cause."""
    found = ended("FAILURE" if code else "SUCCESS", code)

    assert (state_of(found).exit_code, state_of(found).reason) == (code, reason)
    assert found.ended_by is None
    assert found.usd_per_hour is None


def test_out_of_memory_is_never_a_success() -> None:
    """Though the field reads 0 where it is unset."""
    assert (state_of(ended("KERNEL_OOM_KILL")).exit_code, 9 + 128) == (137, 137)
    assert state_of(ended("KERNEL_OOM_KILL", 139)).exit_code == 139
    assert state_of(ended("KERNEL_OOM_KILL")).reason == "OOMKilled"


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        ("TIMEOUT", EndCause.PREEMPTED),
        ("INIT_FAILURE", EndCause.IMAGE),
        ("INTERNAL_FAILURE", EndCause.LOST),
        ("IDLE_TIMEOUT", EndCause.LOST),
        ("MEMORY_MANAGER_EVICTION", EndCause.LOST),
        ("MEMORY_THRASHING_EVICTION", EndCause.LOST),
    ],
)
def test_an_end_that_was_not_its_own_has_a_cause_and_no_code(status: str, cause: EndCause) -> None:
    """Its number would read as success."""
    found = ended(status, 0, "because")

    assert found.phase is InstancePhase.ENDED
    assert found.ended_by is cause
    assert state_of(found).exit_code is None
    assert "because" in (found.message or "")
    assert ended(status, started=False).containers == ()


@pytest.mark.parametrize("status", ["INTERNAL_FAILURE", "TERMINATED"])
def test_a_preemption_is_told_by_its_words(status: str) -> None:
    """No status of its own is known."""
    assert ended(status, 0, "Sandbox was preempted").ended_by is EndCause.PREEMPTED


def test_what_was_terminated_is_gone_unless_it_was_preempted() -> None:
    """By us or by a person: nothing of it is left."""
    assert is_gone(Result("TERMINATED"))
    assert not is_gone(Result("TERMINATED", 0, "preempted by a larger job"))
    assert not is_gone(Result("SUCCESS"))


def test_a_strange_status_is_unknown() -> None:
    """And says which it was."""
    found = ended("status 99")

    assert found.phase is InstancePhase.UNKNOWN
    assert "status 99" in (found.message or "")
    assert found.containers == ()


def test_shortly_before_its_limit_a_sandbox_is_taken_back() -> None:
    """With the reason and the time, while it still runs."""
    found = seen(RUNNING, 86_400 - 300)

    assert found.phase is InstancePhase.ENDED
    assert found.ended_by is EndCause.PREEMPTED
    assert found.reason == "Expiring"
    assert "24 h, which is at 2027-01-16T08:00:00Z" in (found.message or "")
    assert state_of(found).exit_code is None


def test_replicas_of_one_age_are_not_taken_back_together() -> None:
    """The margin is stretched by a share that the UID decides."""
    moments = set()
    for name in ("app-1", "app-2", "app-3"):
        mark = replace(MARK, stamp=make_stamp(name))
        for second in range(600, 299, -1):
            now = datetime.fromtimestamp(START + 86_400 - second, UTC)
            if observe(RUNNING, mark, now, 300).phase is InstancePhase.ENDED:
                moments.add(second)
                break

    assert len(moments) == 3


def test_a_sandbox_without_a_limit_is_never_due() -> None:
    """Nothing is known, so nothing is said."""
    found = seen(replace(RUNNING, timeout_seconds=0), 10**6)

    assert found.phase is InstancePhase.RUNNING
    assert "vk-provider.dev/ends-at" not in found.annotations
