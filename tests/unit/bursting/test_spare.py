"""Free slots: per node and shape, less what training waits for."""

from tests.unit.bursting.views import ago, home, pod, training, virtual, workload
from vk_provider.bursting.picture import Picture, Selection
from vk_provider.bursting.spare import Supply, supply
from vk_provider.taints import Taint, Toleration

SELECTION = Selection()


def test_single_free_gpus_do_not_host_a_pod_of_two() -> None:
    """Eight nodes with one free GPU each are no room for it."""
    found = Supply(free=(1,) * 8, shapes=(1, 2))

    assert (found.slots(1), found.slots(2)) == (8, 0)
    assert found.least_spare == 0


def test_waiting_training_and_headroom_are_not_spare() -> None:
    """In slots of the pod's shape, rounded up."""
    found = Supply(free=(8, 8), training_waiting=5, headroom=1)

    assert found.spare(1) == 16 - 5 - 1
    assert found.spare(2) == 8 - 3 - 1


def test_pods_hold_gpus_until_they_are_gone() -> None:
    """Terminating ones, too; ended ones do not."""
    pods = [
        pod("a", "home-0"),
        pod("b", "home-0", evicted_at=ago(1)),
        pod("c", "home-0", phase="Failed"),
        pod("d", "burst"),
        training("t", "home-1", gpus=8),
    ]
    picture = Picture([home(), home("home-1")], [virtual()], pods)

    assert supply(picture, SELECTION).free == (6, 0)


def test_only_usable_nodes_of_the_selection_count() -> None:
    """Not cordoned ones, not those of another pool."""
    nodes = [home(labels={"pool": "h"}), home("b"), home("c", labels={"pool": "h"}, is_ready=False)]

    assert supply(Picture(nodes), Selection(home={"pool": "h"})).usable_nodes == 1


def test_a_taint_counts_unless_some_inference_tolerates_it() -> None:
    """Without any inference pod nothing is known, and nothing is left out."""
    tainted = home(taints=(Taint("gpu", "", "NoSchedule"),))
    tolerant = pod("a", tolerations=(Toleration("gpu", "Exists"),))

    assert supply(Picture([tainted], pods=[pod()]), SELECTION).usable_nodes == 0
    assert supply(Picture([tainted], pods=[pod(), tolerant]), SELECTION).usable_nodes == 1
    assert supply(Picture([tainted]), SELECTION).usable_nodes == 1


def test_shapes_are_those_in_use_that_fit_home_at_all() -> None:
    """A pod that no home node could ever hold says nothing about home."""
    pods = [pod("a", gpus=2), pod("b", gpus=4), pod("c", gpus=16), pod("d", gpus=0)]

    assert supply(Picture([home()], pods=pods), SELECTION).shapes == (2, 4)
    assert supply(Picture([home()]), SELECTION).shapes == (1,)


def test_training_waits_as_pods_and_as_workloads() -> None:
    """Those that run, end, or are larger than all of home do not."""
    pods = [
        training("a"),
        training("b", "home-0"),
        training("c", evicted_at=ago(1)),
        training("d", phase="Succeeded"),
        pod("e"),
    ]
    queued = [workload(4), workload(4, is_admitted=True), workload(99), workload(is_inference=True)]

    found = supply(Picture([home()], pods=pods, workloads=queued), SELECTION)

    assert found.training_waiting == 8 + 4
