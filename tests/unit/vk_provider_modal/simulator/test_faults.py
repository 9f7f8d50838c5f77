"""Scripted misfortune: the service's own part of it."""

from __future__ import annotations

from grpclib import Status
from vk_provider_modal.simulator.faults import KINDS, make_faults


def test_kinds_are_statuses_and_more() -> None:
    """Each with its words, and meant for creates unless it makes sense for another call only."""
    faults = make_faults()

    missing = faults.add("not-found-after")
    assert missing.answer() == (Status.NOT_FOUND, "scripted NOT_FOUND")
    assert missing.operation == "SandboxCreate"
    assert faults.add("quota").answer() is not None
    broken = faults.add("broken-page")
    assert broken.operation == "SandboxList"
    assert broken.answer() == (Status.UNAVAILABLE, "upstream unavailable")
    assert faults.add("hold").answer() is None
    assert "drop-after" in KINDS
