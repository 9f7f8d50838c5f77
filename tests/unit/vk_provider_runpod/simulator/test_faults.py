"""Scripted misfortune."""

from __future__ import annotations

import pytest
from vk_provider_runpod.simulator.faults import KINDS, REFUSALS, Faults, UnknownKindError


def test_a_fault_wears_off_after_its_count() -> None:
    """And only meets its operation."""
    faults = Faults()
    faults.add("error", count=2)

    assert faults.draw("listPods", {}) is None
    assert [faults.draw("createPod", {}) is not None for _ in range(3)] == [True, True, False]
    assert faults.script[0].fired == 2


def test_filters_are_met_when_they_are_equal() -> None:
    """A call that leaves the data centre open meets none of its faults."""
    faults = Faults()
    faults.add("no-capacity", gpu="NVIDIA L4", data_center="EU-RO-1", match="app")

    meets = {"gpu": "NVIDIA L4", "data_centers": ["EU-RO-1"], "text": "my-app"}
    assert faults.draw("createPod", meets)
    for change in ({"gpu": "NVIDIA L40S"}, {"data_centers": None}, {"text": "other"}):
        assert faults.draw("createPod", {**meets, **change}) is None


def test_chance_is_seeded() -> None:
    """A run can be repeated."""

    def run() -> list[bool]:
        faults = Faults()
        faults.add("error", probability=0.5, seed=7)
        return [faults.draw("createPod", {}) is not None for _ in range(20)]

    assert run() == run()
    assert True in run()
    assert False in run()


def test_faults_are_removed_one_by_one_or_all() -> None:
    """By their ids."""
    faults = Faults()
    first, _ = faults.add("error"), faults.add("reset")

    faults.remove(first.id)
    assert [each.kind for each in faults.script] == ["reset"]
    faults.remove()
    assert faults.script == []


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    """Whoever scripts by hand mistypes."""
    with pytest.raises(UnknownKindError, match="error-after"):
        Faults().add("explode")


def test_kinds_say_what_they_do() -> None:
    """Each of them, and what their answers are."""
    assert all(KINDS.values())
    fault = Faults().add("error", status=500, detail="boom")
    assert fault.answer() == (500, "boom")
    assert Faults().add("reset").answer() is None
    assert set(REFUSALS) <= set(KINDS)


@pytest.mark.parametrize(
    ("kind", "is_after"),
    [("error", False), ("error-after", True), ("hold", True), ("slow", False), ("hang", False)],
)
def test_after_means_that_the_work_was_done(kind: str, is_after: bool) -> None:
    """Which is what makes an outcome unknown."""
    assert Faults().add(kind).is_after is is_after
