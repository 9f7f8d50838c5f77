"""Data centres that keep failing with a GPU type are left alone for a while."""

from __future__ import annotations

from vk_provider_runpod.avoiding import FIRST_SECONDS, MOST_PLACES, MOST_SECONDS, Avoiding

KIND = "NVIDIA L40S"
BAD, GOOD = "EU-RO-1", "US-KS-2"
CATALOGUE = {
    "gpus": [
        {
            "id": KIND,
            "dataCenters": [
                {"id": BAD, "availability": "HIGH"},
                {"id": GOOD, "availability": "LOW"},
                {"id": "EU-SE-1", "availability": "NONE"},
            ],
        }
    ],
    "cpus": [{"id": "cpu5c-2-4", "dataCenters": [{"id": BAD, "availability": "HIGH"}]}],
}


def after(failures: int, kind: str = KIND) -> Avoiding:
    """So many instances failed in a row, all at once."""
    found = Avoiding()
    found.learn(CATALOGUE)
    for _ in range(failures):
        found.failed((kind, BAD), 0.0)
    return found


def test_once_is_bad_luck_and_twice_a_reason() -> None:
    """What is left of the catalogue is what has stock."""
    assert after(1).places(KIND, (), 1.0) == ()
    assert after(2).places(KIND, (), 1.0) == (GOOD,)


def test_other_types_go_on_there() -> None:
    """It may be one host with one kind of GPU."""
    assert after(2).places("NVIDIA L4", (), 1.0) == ()


def test_it_ends_by_itself_and_lasts_longer_each_time() -> None:
    """Doubling, to a limit."""
    assert after(2).avoided(KIND, FIRST_SECONDS - 1) == (BAD,)
    assert after(2).avoided(KIND, FIRST_SECONDS) == ()
    assert after(3).avoided(KIND, 2 * FIRST_SECONDS - 1) == (BAD,)
    assert after(40).avoided(KIND, MOST_SECONDS) == ()


def test_an_instance_that_lives_clears_its_place() -> None:
    """The next failure is the first again."""
    found = after(1)
    found.worked((KIND, BAD))
    found.failed((KIND, BAD), 0.0)

    assert found.avoided(KIND, 1.0) == ()


def test_the_pods_own_wish_is_never_left() -> None:
    """Narrowed where it leaves a choice, and kept where it leaves none."""
    found = after(2)

    assert found.places(KIND, (BAD, GOOD), 1.0) == (GOOD,)
    assert found.places(KIND, (BAD,), 1.0) == (BAD,)


def test_where_nothing_is_left_runpod_chooses() -> None:
    """A bad place is better than none."""
    assert after(2, "cpu5c").places("cpu5c", (), 1.0) == ()


def test_it_forgets_what_was_long_ago() -> None:
    """However many places there are."""
    found = after(2)
    for number in range(MOST_PLACES):
        found.failed((KIND, f"DC-{number}"), 0.0)

    assert found.avoided(KIND, 1.0) == ()
