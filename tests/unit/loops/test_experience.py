"""What a node learns: starts, losses, ordinals, places."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from vk_provider.loops.experience import Experience
from vk_provider.loops.shell import Shell
from vk_provider.metrics import Metrics
from vk_provider.placement.cooling import GOOD_LIFE_SECONDS
from vk_provider.placement.needs import Place
from vk_provider.pods.types import (
    Candidate,
    ContainerObservation,
    InstancePhase,
    InstanceRef,
    Observation,
    Offer,
    PodUID,
    Running,
    Stamp,
    Waiting,
)

A = PodUID("a")
OFFER = Candidate("b", Offer("l40s", gpu_type="L40S", data_center="EU"))
PLACED = '{"backend": "b", "offer": "o", "podUID": "a", "gpuType": "L40S", "dataCenter": "EU"}'


class Hands:
    """A clock that the test moves."""

    seconds = 0.0

    def now(self) -> datetime:
        """The calendar."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def steady(self) -> float:
        """The other one."""
        return self.seconds


def learning() -> tuple[Experience, Hands]:
    """A node that knows nothing yet, and its clock."""
    clock = Hands()
    return Experience(Shell(clock, Metrics(), jitter=lambda: 0.0, node="n")), clock


def seen(phase: InstancePhase = InstancePhase.RUNNING) -> Observation:
    """The pod's instance."""
    state = Running() if phase is InstancePhase.RUNNING else Waiting()
    stamp = Stamp("c", "n", "default", "db-0", A)
    containers = (ContainerObservation("main", state),)
    return Observation(
        stamp, InstanceRef("i"), phase, containers, gpu_type="L40S", data_center="EU"
    )


def ordinal(**status: Any) -> dict[str, Any]:
    """A pod of a StatefulSet that was placed."""
    owner = {"kind": "StatefulSet", "name": "db", "controller": True}
    notes = {"vk-provider.dev/placement": PLACED}
    metadata = {"namespace": "default", "name": "db-0", "uid": "a", "annotations": notes}
    return {"metadata": {**metadata, "ownerReferences": [owner]}, "status": status}


def test_a_start_is_from_the_create_to_the_first_running_container() -> None:
    """Once per create."""
    node, clock = learning()
    node.begun(A, OFFER)
    clock.seconds = 20
    node.observed(A, None, "b", seen(InstancePhase.STARTING))
    clock.seconds = 50
    node.observed(A, None, "b", seen())
    clock.seconds = 90
    node.observed(A, None, "b", seen())
    assert node.starts.quantile("b", "L40S", 0.95) == 50


def test_a_pod_that_was_there_before_tells_of_itself() -> None:
    """Its start, and where its ordinal ran; one that was never placed tells nothing."""
    node, _ = learning()
    running = {"running": {"startedAt": "2026-01-01T00:02:00Z"}}
    status = {"startTime": "2026-01-01T00:00:30Z", "containerStatuses": [{"state": running}]}
    node.remembered(ordinal(**status))
    assert node.starts.median("b", "L40S") == 90
    assert node.ordinals.predecessor("default/db-0") == Place("b", "EU")
    node.remembered({"metadata": {"uid": "a"}})
    node.remembered(ordinal())
    node.seen({"metadata": {"uid": "a"}})
    assert node.starts.keys() == (("b", "L40S"),)


def test_an_instance_tells_where_its_ordinal_is() -> None:
    """Also where the offer left the data centre open."""
    node, _ = learning()
    node.observed(A, ordinal(), "two", seen())
    assert node.ordinals.predecessor("default/db-0") == Place("two", "EU")


def test_a_pod_that_is_over_takes_no_place_any_more() -> None:
    """Also if its ended instance is still listed."""
    node, _ = learning()
    node.begun(A, OFFER)
    assert node.occupancy.counts() == {Place("b", "EU"): 1}
    node.over(A)
    node.observed(A, None, "b", seen(InstancePhase.ENDED))
    assert node.occupancy.counts() == {}


def test_a_good_life_between_two_losses_is_no_row() -> None:
    """Whether the offer names the data centre or leaves it open."""
    node, clock = learning()
    anywhere = Candidate("b", Offer("any", gpu_type="L40S"))
    node.lost(A, "b", seen())
    node.observed(A, None, "b", seen())
    clock.seconds = GOOD_LIFE_SECONDS
    node.over(A)
    node.lost(A, "b", seen())
    assert not node.cooled(OFFER)
    node.lost(A, "b", seen())
    assert node.cooled(OFFER)
    assert node.cooled(anywhere)
    node.lost(A, "c", None)
    assert not node.cooled(Candidate("c", Offer("cpu")))
