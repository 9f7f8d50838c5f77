"""Scripted misfortune."""

from __future__ import annotations

import pytest
from grpclib import Status
from vk_provider_modal.simulator.faults import KINDS, Faults, UnknownKindError


def test_a_fault_wears_off_and_keeps_to_its_filters() -> None:
    """By operation, GPU and text."""
    faults = Faults()
    faults.add("unavailable", count=1, gpu="H100", match="vk-1")

    assert faults.draw("SandboxList", {}) is None
    assert faults.draw("SandboxCreate", {"gpu": "L4", "text": "vk-1"}) is None
    assert faults.draw("SandboxCreate", {"gpu": "H100", "text": "vk-2"}) is None
    assert faults.draw("SandboxCreate", {"gpu": "H100", "text": "vk-1"}) is not None
    assert faults.draw("SandboxCreate", {"gpu": "H100", "text": "vk-1"}) is None


def test_kinds_are_statuses_and_more() -> None:
    """Each with its words; an unknown one is an error that lists them."""
    faults = Faults()

    assert faults.add("not-found-after").answer() == (Status.NOT_FOUND, "scripted NOT_FOUND")
    assert faults.add("quota").answer() is not None
    assert faults.add("broken-page").operation == "SandboxList"
    assert faults.add("broken-page").answer() == (Status.UNAVAILABLE, "upstream unavailable")
    assert faults.add("hold").answer() is None
    assert faults.add("hold").is_after
    assert "drop-after" in KINDS
    with pytest.raises(UnknownKindError, match="drop-after"):
        faults.add("meteor")


def test_a_broken_page_is_never_the_first() -> None:
    """A list that fails at once is another fault."""
    faults = Faults()
    faults.add("broken-page")

    assert faults.draw("SandboxList", {"before": 0}) is None
    assert faults.draw("SandboxList", {"before": 5}) is not None


def test_the_same_seed_gives_the_same_run() -> None:
    """Chance included."""
    runs = []
    for _ in range(2):
        faults = Faults()
        fault = faults.add("unavailable", probability=0.5, seed=7)
        runs.append([faults.draw("SandboxCreate", {}) is not None for _ in range(20)])
        faults.remove(fault.id)
        assert faults.script == []

    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 2
