"""The door: closing is cheap, reopening is one pod, then two, then four; and it is never stuck."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vk_provider.node.door import BackendDoor, Closed, Door, DoorLimits, DoorView

LIMITS = DoorLimits(first=30, cap=600, denied_first=120)


def shut(*names: str, capacity: int = 64) -> Door:
    """A door that closed at 0 s because all backends are full."""
    door = Door.over(names or ("a",), capacity, LIMITS)
    for name in door.backends:
        door.entered(0)
        door.refused(name, "l40s", "full", 0, 0.0)
    door.exhausted(door.backends, "full", 0, 0.0)
    return door


def test_an_open_door_has_no_limit_of_its_own() -> None:
    """Capacity alone limits."""
    door = Door.over(["a"], 64)
    door.entered(0)
    door.succeeded("a", "l40s")

    assert door.view(0) == DoorView()


def test_the_door_closes_when_every_backend_refuses_the_default_need() -> None:
    """One that is full only cools its offers down."""
    door = Door.over(["a", "b"], 64, LIMITS)
    door.exhausted(["a"], "a is full", 0, 0.0)
    assert door.view(0).closed is None

    door.exhausted(["b"], "b is full", 0, 0.0)
    assert door.view(1) == DoorView(Closed.CAPACITY, "b is full", 0, 30)


def test_an_offer_that_was_refused_cools_down_and_doubles() -> None:
    """Several creates that were under way count once; jitter adds up to a fifth."""
    door = Door.over(["a"], 64, LIMITS)
    door.refused("a", "l40s", "full", 0, 0.5)
    door.refused("a", "l40s", "full", 1, 0.5)
    assert door.cooled("a", "l40s", 32.9)
    assert not door.cooled("a", "l40s", 33)
    assert not door.cooled("a", "a100", 1)

    door.refused("a", "l40s", "full", 40, 0.0)
    assert door.cooled("a", "l40s", 99)
    door.succeeded("a", "l40s")
    assert not door.cooled("a", "l40s", 99)


def test_cool_downs_are_capped() -> None:
    """However often the door finds nobody at home."""
    door, now = shut(), 0.0
    for _ in range(12):
        view = door.view(now)
        assert view.reopens_at is not None
        now = view.reopens_at
        door.view(now)
        door.exhausted(["a"], "full", now, 0.0)

    assert door.view(now).reopens_at == now + 600


def test_the_head_room_doubles_with_success() -> None:
    """Fifty waiting pods are let in by 1, 2, 4, ... without a stampede."""
    door, now, waves, left = shut(), 30.0, [], 50
    while left and (room := door.view(now).headroom) is not None:
        wave = min(room, left)
        waves.append(wave)
        for _ in range(wave):
            door.entered(now)
        assert door.view(now).headroom == room - wave
        for _ in range(wave):
            door.succeeded("a", "l40s")
        left -= wave

    assert waves == [1, 2, 4, 8, 16, 19]


def test_it_opens_fully_at_capacity_and_forgets_its_level() -> None:
    """The next cool-down is the first again."""
    door = shut(capacity=2)
    door.view(30)
    door.entered(30)
    door.succeeded("a", "l40s")
    assert door.view(31) == DoorView()

    door.exhausted(["a"], "full", 40, 0.0)
    assert door.view(40).reopens_at == 70


def test_a_failed_probe_closes_the_door_for_twice_as_long() -> None:
    """While it is closed, further refusals change nothing."""
    door = shut()
    door.exhausted(["a"], "late", 5, 0.0)
    assert door.view(5).reopens_at == 30

    assert door.view(30) == DoorView(message="reopening", headroom=1)
    door.entered(31)
    door.refused("a", "l40s", "full", 31, 0.0)
    door.exhausted(["a"], "full", 31, 0.5)
    assert door.view(31).reopens_at == pytest.approx(31 + 60 * 1.1)


@pytest.mark.parametrize("answer", ["left", "refused", "denied"])
def test_a_probe_that_ends_in_any_way_gives_its_place_back(answer: str) -> None:
    """Else a half-open door would stay shut for ever."""
    door = shut("a", "b")
    door.view(30)
    door.entered(30)
    assert door.view(30).headroom == 0
    if answer == "left":
        door.left()
    elif answer == "refused":
        door.refused("a", "special", "full", 31, 0.0)
    else:
        door.denied("a", "no quota", 31, 0.0)

    assert door.view(31).headroom == 1


def test_creates_from_before_the_gap_take_no_place_in_it() -> None:
    """And their answers do not free anybody else's."""
    door = shut()
    door.entered(10)
    assert door.view(30).headroom == 1

    door.entered(31)
    assert door.view(31).headroom == 0
    door.left()
    assert door.view(31).headroom == 0
    door.succeeded("a", "l40s")
    assert door.view(32).headroom == 2


def test_a_denial_closes_one_backend_slowly() -> None:
    """Credentials, quota and billing heal slowly; several answers count once."""
    door = Door.over(["a", "b"], 64, LIMITS)
    door.denied("a", "no quota", 0, 0.0)
    door.denied("a", "no quota", 1, 0.0)
    assert door.cooled("a", "l40s", 119)
    assert not door.cooled("b", "l40s", 1)
    assert door.view(1).closed is None

    assert door.backends["a"].health(1) == "denied: no quota"
    assert not door.cooled("a", "l40s", 120)
    door.succeeded("a", "l40s")
    assert door.backends["a"].health(1) == "ok"


def test_a_denial_everywhere_closes_the_door_slowly() -> None:
    """The taint says why; the gap lets the backend be tried again."""
    door = Door.over(["a"], 64, LIMITS)
    door.denied("a", "no quota", 0, 0.0)
    assert door.view(1) == DoorView(Closed.DENIED, "no quota", 0, 120)

    assert door.view(120).headroom == 1
    assert not door.cooled("a", "l40s", 120)


def test_a_denial_of_another_call_frees_no_place_of_a_create() -> None:
    """A catalogue that refuses us closes the door; the probe of the gap is still under way."""
    door = shut("a")
    door.entered(30)
    door.denied("a", "the key was revoked", 30, 0.0, by_create=False)

    assert door.view(31).closed is Closed.DENIED
    assert door.view(200).headroom == 0


def test_an_outage_closes_until_a_list_works_again() -> None:
    """Time alone opens nothing; the same news twice is one."""
    door = Door.over(["a"], 64, LIMITS)
    door.outage("a", "503", 0)
    door.outage("a", "503", 1)
    assert door.view(10_000) == DoorView(Closed.OUTAGE, "503", 0)
    assert door.cooled("a", "l40s", 1)
    assert door.backends["a"].health(1) == "outage: 503"

    door.outage("a", None, 10_001)
    assert door.view(10_001).headroom == 1


def test_an_outage_of_one_backend_leaves_the_door_open() -> None:
    """And its end changes nothing then."""
    door = Door.over(["a", "b"], 64, LIMITS)
    door.outage("a", "503", 0)
    assert door.view(1).closed is None

    door.outage("a", None, 2)
    assert door.view(2) == DoorView()


def test_a_backend_that_heals_opens_the_door_that_others_keep_shut() -> None:
    """It may have what they lack."""
    door = Door.over(["a", "b"], 64, LIMITS)
    door.outage("a", "503", 0)
    door.exhausted(["b"], "full", 0, 0.0)
    assert door.view(1).closed is Closed.CAPACITY

    door.outage("a", None, 2)
    assert door.view(2).headroom == 1


def test_the_end_of_an_outage_does_not_end_a_refusal() -> None:
    """The door stays closed for the reason that is left, until its time."""
    door = shut()
    door.outage("a", "503", 5)
    assert door.view(6).closed is Closed.OUTAGE

    door.outage("a", None, 10)
    assert door.view(11) == DoorView(Closed.CAPACITY, "503", 0, 30)
    assert door.view(30).headroom == 1


def test_a_spent_budget_closes_the_door_until_money_is_left_again() -> None:
    """Neither time nor a backend that heals makes the pods cheaper."""
    door = Door.over(["a"], 64, LIMITS)
    door.over_budget(None)
    assert door.view(0) == DoorView()

    door.over_budget("40 USD/h are spent")
    door.outage("a", "503", 10)
    door.outage("a", None, 20)
    door.exhausted(["a"], "full", 30, 0.0)
    assert door.view(10_000) == DoorView(Closed.BUDGET, "40 USD/h are spent", 0)

    door.over_budget(None)
    assert door.view(10_001).headroom == 1


def test_a_door_over_nothing_but_outages_leaves_no_gap() -> None:
    """Money is back, the backend is not."""
    door = Door.over(["a"], 64, LIMITS)
    door.over_budget("spent")
    door.outage("a", "503", 10)
    door.over_budget(None)

    assert door.view(11) == DoorView(Closed.OUTAGE, "503", 0)


def test_the_gap_tries_everything_again() -> None:
    """Offers and denials from before are forgotten, their levels are not."""
    door = shut("a", "b")
    door.denied("b", "no quota", 1, 0.0)
    door.view(30)

    assert not door.cooled("a", "l40s", 30)
    assert not door.cooled("b", "l40s", 30)


def test_health_names_the_offers_that_cool_down() -> None:
    """For ``kubectl describe node``."""
    door = shut()

    assert door.backends["a"].health(1) == "out of capacity: l40s"
    assert door.backends["a"].health(40) == "out of capacity"
    assert BackendDoor().health(0) == "ok"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["enter", "enter", "ok", "left", "full", "denied", "outage", "heal"]),
        st.sampled_from(["a", "b"]),
        st.floats(0, 90),
    ),
    max_size=40,
)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(STEPS)
def test_the_door_lets_a_pod_in_once_the_backend_has_capacity(
    steps: list[tuple[str, str, float]],
) -> None:
    """Whatever happened before: it is never stuck, and never lets in more than it shows."""
    door, now, under_way = Door.over(["a", "b"], 8, LIMITS), 0.0, 0
    for what, backend, seconds in steps:
        now += seconds
        under_way += _happen(door, what, backend, now, under_way)
    for _ in range(under_way):
        door.left()
    for backend in ("a", "b"):
        door.outage(backend, None, now)

    view = door.view(now)
    if view.closed is not None:
        assert view.reopens_at is not None
        view = door.view(view.reopens_at)
    assert view.closed is None
    assert view.headroom is None or view.headroom > 0


def _happen(door: Door, what: str, backend: str, now: float, under_way: int) -> int:
    """One step; how many creates more (or fewer) are under way after it."""
    room = door.view(now).headroom
    if what == "enter":
        if room == 0:
            return 0
        door.entered(now)
        assert room is None or door.view(now).headroom == room - 1
        return 1
    if what in ("outage", "heal"):
        door.outage(backend, "503" if what == "outage" else None, now)
        return 0
    if not under_way:
        return 0
    if what == "ok":
        door.succeeded(backend, "l40s")
    elif what == "left":
        door.left()
    elif what == "denied":
        door.denied(backend, "no quota", now, 0.3)
    else:
        door.refused(backend, "l40s", "full", now, 0.3)
        door.exhausted([backend], "full", now, 0.3)
    return -1
