"""Who is in the way of a training job."""

from datetime import timedelta
from typing import Any

from tests.unit.bursting.tiny_cluster import START, job
from vk_provider.bursting import names
from vk_provider.bursting.displacement import Displaced, Home
from vk_provider.bursting.picture import HomeNode, Picture, PodView, Selection


def inference(uid: str, node: str = "a", gpus: int = 1, **more: Any) -> PodView:
    """A pod that may go out."""
    labels = {names.BURST_LABEL: "true"}
    return PodView(uid, "web", uid, node, gpus, labels=labels, **more)


def training(uid: str, node: str = "", gpus: int = 1, **more: Any) -> PodView:
    """A pod of a job that was admitted before."""
    return PodView(uid, "ml", uid, node, gpus, priority_class="training", priority=100, **more)


def home(*pods: PodView, **gpus: int) -> Home:
    """Nodes with so many GPUs each."""
    nodes = [HomeNode(name, gpus=number) for name, number in gpus.items()]
    return Home(Picture(home=nodes, pods=pods), Selection())


def leaving(displaced: Displaced) -> list[str]:
    """The UIDs of those that have to go."""
    return [pod.uid for pod in displaced.leaving]


def test_free_gpus_are_taken_first() -> None:
    """Nobody goes where there is room."""
    assert home(inference("x"), a=2, b=2).admit(job(gpus=2, count=1)) == Displaced()


def test_the_node_with_the_fewest_in_the_way() -> None:
    """And of those that are equal, the fuller one: whole nodes stay whole."""
    found = home(inference("x"), inference("y"), inference("z", "b"), a=2, b=2)
    assert leaving(found.admit(job(gpus=2, count=1))) == ["z"]
    fuller = home(inference("x"), inference("z", "b"), a=2, b=1)
    assert leaving(fuller.admit(job(gpus=1, count=1))) == []


def test_the_least_important_and_the_youngest_go_first() -> None:
    """As the scheduler picks its victims."""
    old = inference("old", created_at=START)
    young = inference("young", created_at=START + timedelta(hours=1))
    vip = inference("vip", priority=5)
    found = home(old, young, vip, a=3)
    assert leaving(found.admit(job(gpus=2, count=1))) == ["young", "old"]


def test_who_is_ending_is_waited_for_and_not_asked() -> None:
    """It holds its GPUs until it is gone."""
    ending = inference("x", evicted_at=START)
    found = home(ending, inference("y"), a=2).admit(job(gpus=1, count=1))
    assert (leaving(found), [pod.uid for pod in found.ending]) == ([], ["x"])


def test_jobs_take_their_room_one_after_another() -> None:
    """The second finds what the first has left."""
    both = home(inference("x"), inference("y"), a=2)
    assert len(leaving(both.admit(job(gpus=1, count=1)))) == 1
    assert len(leaving(both.admit(job(gpus=1, count=1)))) == 1
    assert both.admit(job(gpus=1, count=1)) == Displaced(fits=False)


def test_what_home_can_never_hold_displaces_nobody() -> None:
    """Two nodes of two are no node of four."""
    assert home(inference("x"), a=2, b=2).admit(job(gpus=4, count=1)) == Displaced(fits=False)


def test_admitted_training_without_a_node_comes_first() -> None:
    """Its GPUs are as good as taken, if it fits at all."""
    found = home(training("t", gpus=2), training("huge", gpus=9), a=2, b=2)
    assert found.admit(job(gpus=2, count=1)) == Displaced()
    assert found.admit(job(gpus=2, count=1)) == Displaced(fits=False)


def test_others_stay_where_they_are() -> None:
    """Training that runs, pods of nobody, what is more important; what ended holds nothing."""
    found = home(
        training("t", "a"),
        PodView("u", "x", "u", "a", 1),
        inference("vip", priority=500),
        inference("over", phase="Failed"),
        a=4,
    )
    assert found.admit(job(gpus=1, count=1)) == Displaced()
    assert found.admit(job(gpus=1, count=1)) == Displaced(fits=False)


def test_a_job_of_no_priority_class_is_made_room_for_as_well() -> None:
    """That it is training was said by its queue."""
    nameless = job(gpus=1, count=1, priority=0, priority_classes=frozenset())
    assert leaving(home(inference("x", priority=1000), a=1).admit(nameless)) == ["x"]


def test_sick_and_foreign_nodes_hold_no_training() -> None:
    """Neither what is unfit for it nor what is not home."""
    nodes = [HomeNode("sick", gpus=8, gpu_health=names.TRAINING_UNFIT), HomeNode("far", gpus=8)]
    found = Home(Picture(home=nodes), Selection(home={"pool": "home"}))
    assert found.admit(job(gpus=1, count=1)) == Displaced(fits=False)


def test_pods_without_a_gpu_take_none() -> None:
    """A launcher fits anywhere."""
    launcher = job(pod_gpus=(0, 1), pod_counts=(1, 1))
    assert home(a=1).admit(launcher) == Displaced()
