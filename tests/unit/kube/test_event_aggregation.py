"""Which Events are worth a call."""

from __future__ import annotations

from vk_provider.kube.event_aggregation import (
    COMBINED_PREFIX,
    MOST_REMEMBERED,
    Bucket,
    EventCorrelator,
    Limits,
    Occurrence,
    Regarding,
)

GENEROUS = Limits(burst=10_000)


def occurrence(message: str = "m", name: str = "a", reason: str = "BackOff") -> Occurrence:
    """An Event about a pod."""
    return Occurrence(Regarding("Pod", "default", name, f"uid-{name}"), "Warning", reason, message)


def test_the_same_event_again_is_counted() -> None:
    """One object, a higher count, the first time kept."""
    correlator = EventCorrelator()

    first = correlator.correlate(occurrence(), 100.0)
    again = correlator.correlate(occurrence(), 160.0)

    assert first is not None
    assert again is not None
    assert (again.number, again.count, again.first, again.last) == (first.number, 2, 100.0, 160.0)


def test_another_message_is_another_event() -> None:
    """Up to ten similar ones are shown one by one."""
    correlator = EventCorrelator(GENEROUS)

    entries = [correlator.correlate(occurrence(f"m{n}"), 0.0) for n in range(10)]

    assert len({entry.number for entry in entries if entry}) == 10


def test_more_than_ten_similar_ones_are_combined() -> None:
    """From the eleventh on there is one Event with the latest message."""
    correlator = EventCorrelator(GENEROUS)
    for number in range(10):
        correlator.correlate(occurrence(f"m{number}"), 0.0)

    combined = [correlator.correlate(occurrence(f"m{n}"), 1.0) for n in range(10, 30)]

    assert {entry.number for entry in combined if entry} == {11}
    assert combined[-1] is not None
    assert combined[-1].count == 20
    assert combined[-1].occurrence.message == COMBINED_PREFIX + "m29"


def test_combining_ends_after_a_quiet_spell() -> None:
    """Ten minutes without a similar one, and they are shown one by one again."""
    correlator = EventCorrelator(GENEROUS)
    for number in range(12):
        correlator.correlate(occurrence(f"m{number}"), 0.0)

    entry = correlator.correlate(occurrence("later"), 601.0)

    assert entry is not None
    assert entry.occurrence.message == "later"


def test_an_object_that_keeps_on_talking_is_cut_off() -> None:
    """25 at once, then one per five minutes; other objects are not affected."""
    correlator = EventCorrelator()

    at_once = [correlator.correlate(occurrence(reason=f"R{n}"), 0.0) for n in range(30)]

    assert sum(entry is not None for entry in at_once) == 25
    assert correlator.correlate(occurrence(reason="Late"), 299.0) is None
    assert correlator.correlate(occurrence(reason="Later"), 301.0) is not None
    assert correlator.correlate(occurrence(name="b"), 0.0) is not None


def test_what_is_remembered_is_bounded() -> None:
    """The oldest is forgotten, so a long life costs no more memory than a short one."""
    correlator = EventCorrelator()
    correlator.correlate(occurrence(name="first"), 0.0)
    for number in range(MOST_REMEMBERED):
        correlator.correlate(occurrence(name=f"p{number}"), 0.0)

    entry = correlator.correlate(occurrence(name="first"), 1.0)

    assert entry is not None
    assert entry.count == 1


def test_a_bucket_says_how_long_to_wait() -> None:
    """An empty bucket names the time of its next token; a clock that goes back gives none."""
    bucket = Bucket(burst=1, refill_seconds=2.0, tokens=1, at=10.0)

    assert bucket.take(10.0)
    assert not bucket.take(9.0)
    assert bucket.wait_seconds() == 2.0
