"""Whether the story held, from what the observer saw and from the bill. Pure.

Fed by `history.py`, the acts' times and the simulators' ledgers; feeds the report and the exit
code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tests.story.history import History


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence, whether it held, and the figure that says so."""

    holds: bool
    sentence: str
    figure: str


@dataclass(frozen=True, slots=True)
class Injection:
    """A false signal: its name, and from when to when it lasted."""

    name: str
    since: float
    until: float


def nothing_missed(history: History) -> Verdict:
    """The observer read every event."""
    return Verdict(
        history.gaps == 0,
        "the observer read every watch event",
        f"{history.events} events, {history.gaps} gaps",
    )


def outside_in_time(history: History, seconds: float) -> Verdict:
    """Each preempted replica is replaced outside in time.

    A replacement has no link to what it replaces: the n-th one that is Ready outside answers for
    the n-th one that was preempted.
    """
    pushed = sorted(loss.at for loss in history.preemptions())
    first = pushed[0] if pushed else 0.0
    ready = sorted(start.at for start in history.starts if start.outside and start.at >= first)
    took = [there - left for left, there in zip(pushed, ready, strict=False)]
    return Verdict(
        bool(pushed) and len(ready) >= len(pushed) and max(took) <= seconds,
        f"each preempted replica runs outside within {seconds:.1f} s of its preemption",
        f"{len(pushed)} preempted, {len(ready)} replaced, slowest {max(took, default=0.0):.1f} s",
    )


def all_ready_again(history: History, replicas: int, seconds: float) -> Verdict:
    """Serving is whole again soon after training came."""
    pushed = history.preemptions()
    sentence = f"all {replicas} replicas serve again within {seconds:.1f} s of the first preemption"
    if not pushed:
        return Verdict(False, sentence, "nothing was preempted")
    since = pushed[0].at
    whole = [m.at for m in history.moments if m.at > since and m.ready >= replicas]
    least = min((m.ready for m in history.between(since, whole[0] if whole else since)), default=0)
    took = whole[0] - since if whole else float("inf")
    return Verdict(took <= seconds, sentence, f"{took:.1f} s, at least {least} Ready meanwhile")


def few_in_flight(
    history: History, since: float, until: float, replicas: int, most: int
) -> Verdict:
    """On the way home no more replicas are missing at any moment than may move at once."""
    least = min((moment.ready for moment in history.between(since, until)), default=0)
    return Verdict(
        replicas - least <= most,
        f"never more than {most} replicas on their way home at once",
        f"at most {replicas - least}: {least} of {replicas} Ready in the worst moment",
    )


def never_below(history: History, since: float, until: float, least: int, what: str) -> Verdict:
    """Serving never falls below a minimum in a span of time."""
    seen = min((moment.ready for moment in history.between(since, until)), default=0)
    return Verdict(
        seen >= least, f"never fewer than {least} replicas Ready {what}", f"at least {seen} Ready"
    )


def still_while(history: History, injection: Injection, returning_since: float) -> Verdict:
    """Pods were coming home before a false signal, and none is moved while it lasts."""
    before = history.evictions(returning_since, injection.since)
    during = history.evictions(injection.since, injection.until)
    lasted = injection.until - injection.since
    return Verdict(
        bool(before) and not during,
        f"nobody is moved while the signal is {injection.name}",
        f"{len(before)} evictions before, {len(during)} in the {lasted:.1f} s that it lasted",
    )


def all_home(history: History, replicas: int) -> Verdict:
    """In the end every replica serves from home."""
    now = history.now
    return Verdict(
        now.ready_home == replicas and now.ready_outside == 0,
        f"all {replicas} replicas serve from home in the end",
        f"{now.ready_home} at home, {now.ready_outside} outside",
    )


def pushed_again(history: History, since: float) -> Verdict:
    """Training that came in the middle of the way home pushed out who was there already."""
    again = [loss for loss in history.preemptions() if loss.at >= since]
    first = len(history.preemptions()) - len(again)
    return Verdict(
        bool(again) and bool(first),
        "training in the middle of the way home pushes out who is there already",
        f"{first} preempted the first time, {len(again)} the second",
    )


def dearest_first(history: History, nodes: Sequence[str], since: float = 0.0) -> Verdict:
    """Nobody leaves a node while a dearer one has pods; ``nodes`` begin with the cheapest."""
    left = [loss.pod.node for loss in history.evictions(since)]
    ordered = sorted(left, key=lambda node: -list(nodes).index(node))
    runs = [f"{len(list(some))} from {node}" for node, some in groupby(left)]
    return Verdict(
        bool(left) and left == ordered, "the most expensive come home first", ", ".join(runs)
    )


def bill_stops(
    ledgers: Iterable[Mapping[str, Any]], later: Iterable[Mapping[str, Any]], home: float
) -> Verdict:
    """Nothing bills any more when the last replica is home, and nothing is added afterwards."""
    first, then = list(ledgers), list(later)
    charges = [charge for ledger in then for charge in ledger["charges"]]
    running = sum(len(ledger["open"]) for ledger in first + then)
    twice = sum(len(ledger["doubleBilled"]) for ledger in then)
    total, after = (sum(ledger["usd"] for ledger in some) for some in (first, then))
    ends = [_wall_clock(each, charge["end"]) for each in then for charge in each["charges"]]
    early = home - max(ends, default=float("inf"))
    return Verdict(
        bool(charges) and running == 0 and total == after and twice == 0 and early >= 0,
        "the bill stops when the last replica is home",
        f"{len(charges)} instances, {after:.4f} USD; stopped {early:.1f} s before the last replica "
        f"served at home; {running} still billing, {twice} billed twice",
    )


def _wall_clock(ledger: Mapping[str, Any], moment: float | None) -> float:
    """When something on a bill was, by our clock; never, if it has not been yet."""
    if moment is None:
        return float("inf")
    return float(ledger["clock"] - (ledger["now"] - moment))


def failures(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Those that do not hold."""
    return [verdict for verdict in verdicts if not verdict.holds]
