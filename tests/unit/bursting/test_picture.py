"""What views say of themselves: usable, tolerated, waiting, selected."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.bursting.views import home, pod, training, virtual, workload
from vk_provider.bursting.picture import Picture, Selection, may_enter
from vk_provider.taints import Taint, Toleration

TAINT = Taint("gpu", "yes", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration("gpu", "Equal", "yes"), True),
        (Toleration("gpu", "Equal", "no"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("gpu", "Exists", effect="NoExecute"), False),
        (Toleration("other", "Exists"), False),
        (Toleration("", "Exists"), True),
        (Toleration("", "Equal"), False),
    ],
)
def test_a_toleration_covers_as_the_scheduler_says(toleration: Toleration, covers: bool) -> None:
    """Key, operator, value, effect."""
    assert toleration.covers(TAINT) is covers
    assert may_enter([toleration], [TAINT]) is covers


def test_a_preference_keeps_nobody_off() -> None:
    """PreferNoSchedule only changes a score."""
    assert may_enter([], [Taint("gpu", effect="PreferNoSchedule")])


def test_a_home_node_is_usable_unless_something_is_wrong_with_it() -> None:
    """Training wants it healthy, too."""
    node = home()

    assert node.is_usable
    assert node.is_fit_for_training
    wrongs: list[dict[str, Any]] = [
        {"is_ready": False},
        {"is_cordoned": True},
        {"gpus": 0},
        {"gpu_health": "dead"},
    ]
    for wrong in wrongs:
        assert not replace(node, **wrong).is_usable
    unfit = replace(node, gpu_health="training-unfit")
    assert (unfit.is_usable, unfit.is_fit_for_training) == (True, False)


def test_a_pod_is_over_when_it_has_ended() -> None:
    """And terminating when its deletion was asked for."""
    assert pod(phase="Failed").is_over
    assert not pod().is_over
    assert not pod().is_terminating
    assert not pod().is_unschedulable


def test_a_pod_without_a_time_counts_as_the_oldest() -> None:
    """Nobody says when it was created."""
    assert replace(pod(), created_at=datetime.fromtimestamp(7, UTC)).born == 7.0
    assert replace(pod(), created_at=None).born == 0.0


def test_a_workload_waits_until_it_is_admitted() -> None:
    """Unless it is switched off or finished."""
    assert workload().is_waiting
    assert not workload(is_active=False).is_waiting
    assert not workload(is_finished=True).is_waiting
    assert not workload(is_admitted=True).is_waiting


def test_a_picture_finds_a_virtual_node_by_name() -> None:
    """Or none."""
    picture = Picture(virtual=[virtual("a")])

    assert picture.virtual_node("a") == virtual("a")
    assert picture.virtual_node("b") is None


def test_a_selection_tells_inference_from_training() -> None:
    """By label, by priority class; what may burst is no training."""
    selection = Selection(home={"pool": "home"})

    assert selection.is_inference(pod())
    assert not selection.is_inference(training())
    assert selection.is_training(training())
    assert not selection.is_training(pod(priority_class="training"))
    assert selection.is_home(home(labels={"pool": "home"}))
    assert not selection.is_home(home())


def test_a_workload_is_training_by_queue_and_class() -> None:
    """A queue that is not known yet may be one of them."""
    selection = Selection(queues=frozenset({"train"}))

    assert selection.is_training_workload(workload(cluster_queue="train", has_quota=True))
    assert selection.is_training_workload(workload())
    assert not selection.is_training_workload(workload(cluster_queue="serve"))
    assert not selection.is_training_workload(workload(is_inference=True))
    assert not selection.is_training_workload(workload(priority_classes=frozenset({"low"})))
    assert Selection().is_training_workload(workload(priority_classes=frozenset()))
