"""What a session remembers, since lists show the running ones only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vk_provider_modal.facts import Result, Sandbox
from vk_provider_modal.memory import FORGET_SECONDS, Memory
from vk_provider_modal.stamp import UID, stamp_tags

from vk_provider.pods.types import IMPLICIT_OFFER
from vk_provider.testing.builders import CLUSTER_ID, make_stamp

NOW = 1_800_000_000.0


def sandbox(name: str = "app-1", **fields: Any) -> Sandbox:
    """A sandbox of ours."""
    tags = stamp_tags(make_stamp(name), "main", IMPLICIT_OFFER, (80,))
    return replace(Sandbox(f"sb-{name}", tags, f"vk-{name}", NOW, NOW), **fields)


def ids(memory: Memory) -> list[str]:
    """What a complete list of ours shows."""
    return [each.id for each, _ in memory.all()]


def test_strangers_are_not_remembered() -> None:
    """Neither without our mark nor with another cluster's."""
    memory = Memory("another")

    assert memory.take([sandbox(), Sandbox("sb-x")], NOW) == []
    memory.created(sandbox())

    assert ids(memory) == []


def test_what_left_the_list_is_asked_for_and_its_end_kept() -> None:
    """Until it is deleted."""
    memory = Memory(CLUSTER_ID)
    memory.take([sandbox()], NOW)

    assert memory.take([], NOW) == ["sb-app-1"]
    memory.settle("sb-app-1", Result("SUCCESS"))
    assert memory.take([], NOW) == []
    assert memory.all()[0][0].result == Result("SUCCESS")
    assert memory.mark_of("sb-app-1") is not None

    memory.deleted("sb-app-1")
    assert ids(memory) == []
    assert memory.mark_of("sb-app-1") is None


def test_a_list_that_forgets_something_loses_nothing() -> None:
    """It runs, so it is there, whether it was asked for or not."""
    memory = Memory(CLUSTER_ID)
    memory.created(sandbox())

    assert memory.take([], NOW) == ["sb-app-1"]
    assert ids(memory) == ["sb-app-1"]
    memory.settle("sb-app-1", Result())

    assert ids(memory) == ["sb-app-1"]


def test_what_modal_does_not_know_is_gone() -> None:
    """As is what somebody terminated."""
    memory = Memory(CLUSTER_ID)
    memory.take([sandbox("app-1"), sandbox("app-2")], NOW)
    memory.take([], NOW)

    memory.settle("sb-app-1", None)
    memory.settle("sb-app-2", Result("TERMINATED"))

    assert ids(memory) == []


def test_what_we_deleted_is_not_kept_for_its_end() -> None:
    """Whatever that was."""
    memory = Memory(CLUSTER_ID)
    memory.take([sandbox()], NOW)
    memory.deleted("sb-app-1")
    memory.take([], NOW)
    memory.settle("sb-app-1", Result("FAILURE", 3))

    assert ids(memory) == []
    assert memory.ordered == set()


def test_the_first_list_shows_what_has_ended_of_late() -> None:
    """But not what is gone, nor what was deleted meanwhile."""
    memory = Memory(CLUSTER_ID)
    memory.deleted("sb-app-3")
    memory.created(sandbox("app-3"))
    memory.take(
        [
            sandbox("app-1", result=Result("FAILURE", 3)),
            sandbox("app-2", result=Result("TERMINATED")),
            sandbox("app-3", result=Result("SUCCESS")),
            sandbox("app-4", result=Result("status 99")),
        ],
        NOW,
    )

    assert set(ids(memory)) >= {"sb-app-1", "sb-app-4"}
    assert not {"sb-app-2"} & set(ids(memory))


def test_old_ends_are_forgotten() -> None:
    """No pod waits for them any more."""
    memory = Memory(CLUSTER_ID)
    memory.take([sandbox(result=Result("SUCCESS"))], NOW)

    memory.take([], NOW + 26 * 3600)

    assert ids(memory) == []


def test_addresses_are_asked_for_once_and_kept() -> None:
    """Lists don't show them."""
    memory = Memory(CLUSTER_ID)
    memory.take([sandbox()], NOW)
    assert [each.id for each in memory.without_tunnels()] == ["sb-app-1"]

    memory.tunnelled(sandbox(tunnels={80: "https://a"}))
    memory.tunnelled(sandbox("app-9", tunnels={80: "https://b"}))
    memory.take([sandbox()], NOW)

    assert memory.without_tunnels() == []
    assert memory.all()[0][0].tunnels == {80: "https://a"}


def test_a_pods_sandbox_is_known_as_long_as_a_bill_may_come() -> None:
    """Also after it is gone."""
    memory = Memory(CLUSTER_ID)
    tag = sandbox().tags[UID]
    memory.created(sandbox())
    memory.take([sandbox()], NOW)
    memory.deleted("sb-app-1")
    memory.take([], NOW)
    memory.settle("sb-app-1", None)

    assert memory.billed[tag][0] == "sb-app-1"
    memory.take([], NOW + FORGET_SECONDS + 1)
    assert memory.billed == {}
