"""Scripted misfortune: the service's own part of it."""

from __future__ import annotations

from vk_provider_runpod.simulator.faults import KINDS, REFUSALS, make_faults


def test_a_data_centre_is_met_by_calls_that_name_it() -> None:
    """A call that leaves the choice open meets none of its faults."""
    faults = make_faults()
    faults.add("no-capacity", gpu="NVIDIA L4", data_center="EU-RO-1", match="app")

    meets = {"gpu": "NVIDIA L4", "data_centers": ["EU-RO-1"], "text": "my-app"}
    assert faults.draw("listPods", meets) is None
    assert faults.draw("createPod", meets)
    for change in ({"gpu": "NVIDIA L40S"}, {"data_centers": None}, {"data_centers": ["X"]}):
        assert faults.draw("createPod", {**meets, **change}) is None


def test_kinds_say_what_they_do() -> None:
    """Each of them, and what their answers are."""
    faults = make_faults()

    assert all(KINDS.values())
    assert faults.add("error", status=500, detail="boom").answer() == (500, "boom")
    assert faults.add("reset").answer() is None
    assert faults.add("lingering").operation == "deletePod"
    assert set(REFUSALS) <= set(KINDS)
