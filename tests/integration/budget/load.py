"""A month of random load: pods come at random, want random GPUs and stay for a random time.

The scheduler is played too: a pod comes only to a node without a taint and with room, as the API
server has it at that moment; otherwise its demand is lost.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Guest:
    """One pod: when it comes, how long it stays, what it wants, and how it ends.

    ``leaves``: somebody deletes it; otherwise its container ends by itself. ``dies``: its instance
    vanishes half way, as a preempted one does.
    """

    name: str
    at: float
    stays: float
    gpus: int
    namespace: str
    leaves: bool
    dies: bool = False


def guests(seed: int, days: float, per_day: float, hours: float, dying: float = 0.0) -> list[Guest]:
    """All of them, in the order of their coming."""
    rng = random.Random(seed)
    found: list[Guest] = []
    at = rng.expovariate(per_day / DAY)
    while at < days * DAY:
        found.append(
            Guest(
                name=f"guest-{len(found)}",
                at=at,
                stays=rng.expovariate(1 / (hours * 3600)),
                gpus=rng.choice((1, 1, 2)),
                namespace=rng.choice(("default", "team-a", "team-b")),
                leaves=rng.random() < 0.5,
                dies=rng.random() < dying,
            )
        )
        at += rng.expovariate(per_day / DAY)
    return found


def demand_usd(load: list[Guest], usd_per_gpu_hour: float, until: float) -> float:
    """What they would cost at least if nobody was ever turned away."""
    return sum(
        each.gpus * usd_per_gpu_hour * max(0.0, min(each.stays, until - each.at)) / 3600
        for each in load
    )


async def play(
    load: list[Guest],
    has_room: Callable[[], bool],
    come: Callable[[Guest], None],
    go: Callable[[Guest], None],
) -> None:
    """Let them come and go until the last has gone."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for guest in load:
        await asyncio.sleep(max(0.0, begun + guest.at - loop.time()))
        if not has_room():
            continue
        come(guest)
        loop.call_later(guest.stays + (0 if guest.leaves else DAY / 24), go, guest)
