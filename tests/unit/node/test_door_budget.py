"""The door and the budget: closed by money, opened by money, not by time."""

from __future__ import annotations

from vk_provider.node.door import Closed, Door


def test_it_stays_closed_until_there_is_money() -> None:
    """No cool-down opens it; then it is half open as after any other reason."""
    door = Door.over(["a"], capacity=10)
    door.over_budget("spent")
    view = door.view(1e9)
    assert (view.closed, view.message, view.headroom) == (Closed.BUDGET, "spent", 0)
    assert view.reopens_at is None
    door.over_budget(None)
    assert door.view(1e9).closed is None
    assert door.view(1e9).headroom == 1


def test_money_opens_no_door_that_it_did_not_close() -> None:
    """An outage goes on."""
    door = Door.over(["a"], capacity=10)
    door.outage("a", "503", 0.0)
    door.over_budget(None)
    assert door.view(1.0).closed is Closed.OUTAGE
