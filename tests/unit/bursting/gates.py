"""Gates and what they see, with the usual values: for the tests of the gate's rules."""

from typing import Any

from tests.unit.bursting.views import NOW, ago
from vk_provider.bursting.gate import step
from vk_provider.bursting.gate_state import Gate, GateState
from vk_provider.bursting.signals import Trust
from vk_provider.bursting.situation import Rules, Situation
from vk_provider.bursting.spare import Supply

RULES = Rules()
FREE = Supply(free=(8, 8))
FULL = Supply(free=(0, 0))
DOUBT = Trust(may_close=False, may_move=False, why="stale")
QUIET = {"roomy_since": ago(3600), "quiet_since": ago(3600)}


def at(gate: Gate, **more: Any) -> GateState:
    """A gate that has stood so for an hour."""
    return GateState(gate, ago(3600), **more)


def look(supply: Supply = FREE, **more: Any) -> Situation:
    """Four pods outside."""
    usual: dict[str, Any] = {"outside": 4, "all_outside": 4, "quiet_for": 600}
    return Situation(supply, **(usual | more))


def moved(state: GateState, situation: Situation, rules: Rules = RULES) -> tuple[str, str] | None:
    """Where the gate moves and why; None if it stays."""
    after = step(state, situation, rules, NOW)
    return None if after.value is state.value else (after.value, after.reason)
