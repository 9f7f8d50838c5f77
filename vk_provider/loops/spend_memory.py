"""The spend of a node across restarts: a line in an annotation of the Node, written rarely.

It is renewed after five minutes, when a hundredth of a cap was spent since, and at a clean stop; at
rest not at all. What a crash can forget is an instance that was made and ended since the last line.
Fed by ``loops.spending``; read and written through ``loops.node_heartbeat``.
"""

from __future__ import annotations

from vk_provider.loops.spending import Spending
from vk_provider.placement.saved import Saved, parse, render, saved_of

SAVE_SECONDS = 300.0
SAVE_SHARE = 0.01


class SpendMemory:
    """What is to stand in the annotation. Without a budget there is none."""

    def __init__(self, spending: Spending) -> None:
        self._spending = spending
        self._last: Saved | None = None
        self._saved_at = 0.0
        self._text: str | None = None
        self._is_fresh = True

    def restore(self, text: str) -> None:
        """Take up what a predecessor saved. Only at the start: a Node that was made anew later
        knows less than we do. What was written in the future was so by a clock that went wrong: its
        sums hold, from now on."""
        saved = parse(text) if self._is_fresh and self._spending.budget.limits.any else None
        self._is_fresh = False
        if saved is not None:
            at = min(saved.at, self._spending.now().calendar)
            self._spending.budget.meters.restore(saved.spent, saved.rates, at)
            self._last, self._text = saved, text

    def line(self, *, at_once: bool = False) -> str | None:
        """What the annotation should say now."""
        budget = self._spending.budget
        if not budget.limits.any:
            return None
        now = self._spending.now()
        found = saved_of(budget.meters, now)
        if at_once or self._is_due(found, now.steady):
            self._last, self._saved_at, self._text = found, now.steady, render(found)
        return self._text

    def _is_due(self, found: Saved, steady: float) -> bool:
        if self._last is None:
            return True
        if not found.is_news(self._last):
            return False
        return steady - self._saved_at >= SAVE_SECONDS or self._has_spent_since(self._last)

    def _has_spent_since(self, last: Saved) -> bool:
        return any(
            each.usd - last.spent.get(each.key, {}).get(each.scope, 0.0) >= SAVE_SHARE * each.cap
            for each in self._spending.budget.shares(self._spending.now())
            if each.period != "hour"
        )
