"""Pods on their way home: counted from the pods as they are."""

from tests.unit.bursting.views import NOW, ago, home, pod, virtual
from vk_provider.bursting.homecoming import Homecoming, cold_start, homecoming
from vk_provider.bursting.picture import Owner, Picture, PodView, Selection

BEGAN = ago(100)


def seen(*pods: PodView, ready_within: float = 60) -> Homecoming:
    """The way home with these pods."""
    picture = Picture([home()], [virtual()], pods)
    return homecoming(picture, Selection(), BEGAN, NOW, ready_within)


def test_nobody_moves_before_somebody_was_evicted() -> None:
    """Old pods, at home and outside."""
    assert seen(pod("a", "home-0", is_ready=True), pod("b", "burst")) == Homecoming()


def test_an_evicted_pod_is_missing_until_there_is_another() -> None:
    """Then that one is on its way, and they are counted once."""
    gone = pod("a", "burst", evicted_at=ago(5))
    new = pod("b", "home-0", created_at=ago(5))

    assert seen(gone) == Homecoming(in_flight=1, most_of_one=1)
    assert seen(gone, new) == Homecoming(in_flight=1, most_of_one=1)
    assert seen(new) == Homecoming(in_flight=1, most_of_one=1)


def test_a_replacement_that_is_ready_at_home_has_arrived() -> None:
    """Also while the evicted one still ends."""
    gone = pod("a", "burst", evicted_at=ago(5))
    new = pod("b", "home-0", created_at=ago(5), is_ready=True)

    assert seen(gone, new) == Homecoming(arrived=1)


def test_one_answer_does_not_serve_two() -> None:
    """Two were evicted, one was made."""
    pods = [pod(uid, "burst", evicted_at=ago(5)) for uid in "ab"]
    new = pod("c", "home-0", created_at=ago(4))

    assert seen(*pods, new) == Homecoming(in_flight=2, most_of_one=2)


def test_workloads_are_counted_apart() -> None:
    """The most of one is what a budget per workload is about."""
    other = Owner("ReplicaSet", "other", "rs2")
    pods = [pod("a", "burst", evicted_at=ago(5)), pod("b", created_at=ago(5), owner=other)]

    assert seen(*pods) == Homecoming(in_flight=2, most_of_one=1)


def test_a_replacement_that_takes_too_long_is_late() -> None:
    """By name, for people."""
    assert seen(pod("b", created_at=ago(70))).late == ("web/b",)
    assert seen(pod("b", created_at=ago(50))).late == ()


def test_a_pod_that_is_unready_for_a_moment_is_not_late() -> None:
    """It has its time again."""
    flickers = pod("b", "home-0", created_at=ago(90), unready_since=ago(5), is_ready=False)

    assert (seen(flickers).late, seen(flickers).in_flight) == ((), 1)


def test_a_replacement_that_went_out_again_is_told() -> None:
    """It is not on its way any more."""
    assert seen(pod("b", "burst", created_at=ago(5))) == Homecoming(outside=("web/b",))


def test_others_are_left_out() -> None:
    """Ended pods, those of nobody, those that are no inference, evictions at home or before."""
    assert (
        seen(
            pod("a", phase="Failed", created_at=ago(5)),
            pod("b", owner=None, created_at=ago(5)),
            pod("c", labels={}, created_at=ago(5)),
            pod("d", "home-0", evicted_at=ago(5)),
            pod("e", "burst", evicted_at=ago(200)),
            pod("f", created_at=None),
        )
        == Homecoming()
    )


def test_a_cold_start_is_what_nine_of_ten_stay_within() -> None:
    """From a node to Ready; a guess where nobody has started."""
    pods = [
        pod(str(took), "home-0", scheduled_at=ago(100), ready_since=ago(100 - took))
        for took in range(1, 11)
    ]

    assert cold_start(pods, 120) == 9
    assert cold_start([pod()], 120) == 120
