"""When scripted misfortune strikes."""

from __future__ import annotations

from typing import Any

import pytest

from vk_provider.testing.simulator.faults import Faults, ScriptedFault, UnknownKindError

KINDS = dict.fromkeys(
    ("error", "error-after", "broken-page", "hang", "hang-after", "hold", "slow"), "fails"
)


def script() -> Faults[ScriptedFault]:
    """Kinds of which one is meant for lists."""
    return Faults(ScriptedFault, KINDS, {"broken-page": "list"})


def test_a_fault_wears_off_after_its_count() -> None:
    """And only meets its operation."""
    faults = script()
    fault = faults.add("error", count=2, operation="create")

    assert faults.draw("list", {}) is None
    assert [faults.draw("create", {}) is not None for _ in range(3)] == [True, True, False]
    assert fault.fired == 2


def test_filters_are_met_when_they_are_equal() -> None:
    """By GPU and a part of the text."""
    faults = script()
    faults.add("error", gpu="L4", match="app")

    meets = {"gpu": "L4", "text": "my-app"}
    assert faults.draw("create", meets)
    for change in ({"gpu": "L40S"}, {"text": "other"}):
        assert faults.draw("create", {**meets, **change}) is None


def test_a_broken_page_is_never_the_first() -> None:
    """A list that fails at once is another fault."""
    faults = script()
    faults.add("broken-page")

    assert faults.draw("create", {"cursor": "x"}) is None
    assert faults.draw("list", {"cursor": None}) is None
    assert faults.draw("list", {"cursor": "x"}) is not None


def test_chance_is_seeded() -> None:
    """A run can be repeated."""

    def run() -> list[bool]:
        faults = script()
        faults.add("error", probability=0.5, seed=7)
        return [faults.draw("create", {}) is not None for _ in range(20)]

    assert run() == run()
    assert len(set(run())) == 2


def test_faults_are_removed_one_by_one_or_all() -> None:
    """By their ids."""
    faults = script()
    first, _ = faults.add("error"), faults.add("hang")

    faults.remove(first.id)
    assert [each.kind for each in faults.script] == ["hang"]
    faults.remove()
    assert faults.script == []


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    """Whoever scripts by hand mistypes."""
    with pytest.raises(UnknownKindError, match="error-after"):
        script().add("explode")


@pytest.mark.parametrize(
    ("kind", "settings", "is_after", "delay"),
    [
        ("error", {}, False, 0),
        ("error-after", {}, True, 0),
        ("hold", {"hold_ms": 300}, True, 0.3),
        ("hang", {}, False, 60),
        ("hang-after", {}, True, 60),
        ("slow", {"latency_ms": (20, 20)}, False, 0.02),
    ],
)
def test_a_kind_says_whether_the_work_was_done_and_how_long_it_takes(
    kind: str, settings: dict[str, Any], is_after: bool, delay: float
) -> None:
    """What was done without an answer has an outcome that nobody knows."""
    faults = script()
    fault = faults.add(kind, **settings)

    assert fault.is_after is is_after
    assert faults.delay_seconds(fault) == pytest.approx(delay)
