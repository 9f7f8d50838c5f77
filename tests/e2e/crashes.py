"""Kill the node under test again and again while its workloads grow and shrink.

``python -m tests.e2e.crashes --kills 50 --seed 1``: exit 0 only if no pod UID was ever billed
twice, nothing is left over, nobody else's instance was touched, and the workloads recover.
Fed by the command line and ``test_crashes``; plays on ``crash_stage``, judged by ``crash_judge``.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.crash_judge import (
    Kill,
    VerdictError,
    count_cut_off,
    forget_answered,
    judge,
    ours,
)
from tests.e2e.crash_stage import (
    DEPLOYMENT,
    NODE,
    STATEFUL_SET,
    CrashStage,
    Plan,
    set_up,
)
from tests.e2e.crash_troubles import DOUBT, FAULTS, TROUBLES, Troubles, script_faults
from tests.rig.polling import eventually

MOST_REPLICAS = 10
MOST_SET = 3
CALM_EVERY = 15
MOST_VANISHED = 3
FINAL_REPLICAS = 6
RECOVERY_SECONDS = 90.0
TROUBLE_WEIGHT = 3


@dataclass(slots=True)
class Outcome:
    """What the run came to."""

    kills: list[Kill] = field(default_factory=list)
    double_billed: int = 0
    left_over: int = 0
    instances: int = 0
    failed_pods: set[str] = field(default_factory=set)
    seconds: float = 0.0

    @property
    def in_the_window(self) -> int:
        """Kills that fell between a create's arrival and its answer."""
        return sum(bool(kill.cut_off) for kill in self.kills)

    def __str__(self) -> str:
        rounds = Counter(kill.round for kill in self.kills)
        return (
            f"{len(self.kills)} kills ({', '.join(f'{n} {k}' for k, n in rounds.items())}), "
            f"{self.in_the_window} between a create's arrival and its answer; "
            f"{self.instances} instances; billed twice: {self.double_billed}; "
            f"left over: {self.left_over}; Failed pods: {len(self.failed_pods)}; "
            f"{self.seconds:.0f} s"
        )


class Crashes:
    """The rounds. Each changes the workloads, waits for its moment, and kills the leader."""

    def __init__(self, stage: CrashStage, outcome: Outcome) -> None:
        self.stage = stage
        self.outcome = outcome
        self._rng = random.Random(stage.plan.seed)
        self._replicas = 0
        self._vanished = 0
        self._rounds: dict[str, tuple[int, Callable[[], Awaitable[None]]]] = {
            "creating": (8, self._creating),
            "growing": (4, self._growing),
            "shrinking": (5, self._shrinking),
            "replacing": (2, self._replacing),
            "forcing": (2, self._forcing),
            "doubting": (2, self._doubting),
            "ending": (1, self._ending),
            "starting": (3, self._starting),
        }
        if stage.plan.only_troubles:
            self._rounds.clear()
        troubles = Troubles(stage, self._rng)
        for trouble in stage.plan.troubles:
            self._rounds[trouble] = (TROUBLE_WEIGHT, getattr(troubles, trouble))

    async def play(self) -> None:
        """All rounds, with calm between some of them; then the workloads must recover."""
        weights = [weight for weight, _ in self._rounds.values()]
        # A generator of its own: the order of the rounds must not depend on what happens in them.
        order = random.Random(self.stage.plan.seed)
        names = order.choices(list(self._rounds), weights, k=self.stage.plan.kills)
        for number, name in enumerate(names, start=1):
            if name != "starting":
                await self._let_work()
            await self._rounds[name][1]()
            await self._kill(name)
            await judge(self.stage)
            await self._note_failures()
            if number % CALM_EVERY == 0:
                await self._calm()

    async def _let_work(self) -> None:
        """A leader is there, and has had a moment."""
        await eventually(self.stage.leader, "a leader", seconds=60, interval=0.05)
        await asyncio.sleep(self._rng.uniform(0.1, 1.5))

    async def _creating(self) -> None:
        """Aim: a create has come to the account and is not answered."""
        if self._replicas + 2 > MOST_REPLICAS:
            await self._scale(self._rng.randint(1, 4))
        before = len(await self.stage.account.requests())
        await self._scale(self._replicas + self._rng.randint(1, 3))
        await self._until_a_create_waits(before - 1)
        await asyncio.sleep(self._rng.uniform(0, 0.1))

    async def _growing(self) -> None:
        await self._scale(self._rng.randint(min(self._replicas, MOST_REPLICAS), MOST_REPLICAS))
        await self._scale_set(self._rng.randint(1, MOST_SET))
        await asyncio.sleep(self._rng.uniform(0, 2))

    async def _shrinking(self) -> None:
        await self._scale(self._rng.randint(0, max(0, self._replicas - 1)))
        await self._scale_set(self._rng.randint(0, MOST_SET - 1))
        await asyncio.sleep(self._rng.uniform(0, 1.5))

    async def _replacing(self) -> None:
        """Deletes and creates at once, under the same names where the set's pods go."""
        for pod in await self._some_pods(3):
            await self.stage.delete_pod(pod)
        await asyncio.sleep(self._rng.uniform(0, 1.5))

    async def _forcing(self) -> None:
        """Pods vanish from the API at once, whatever runs for them."""
        for pod in await self._some_pods(2):
            await self.stage.delete_pod(pod, grace=0)
        await asyncio.sleep(self._rng.uniform(0, 1))

    async def _doubting(self) -> None:
        """No create has a known outcome, and some of the pods in doubt are deleted."""
        await script_faults(self.stage, DOUBT)
        await self._scale(self._replicas + 3)
        await asyncio.sleep(self._rng.uniform(0.3, 1))
        for pod in await self._some_pods(4):
            await self.stage.delete_pod(pod, self._rng.choice((None, 0)))
        await script_faults(self.stage, FAULTS)
        await asyncio.sleep(self._rng.uniform(0, 1))

    async def _ending(self) -> None:
        """An instance is lost: its pod's terminal status is being written."""
        ledger = await self.stage.account.ask("/ledger")
        alive = ours(ledger["open"], self.stage)
        if alive and self._vanished < MOST_VANISHED:
            self._vanished += 1
            chosen = self._rng.choice(alive)["instance"]
            await self.stage.account.ask(f"/pods/{chosen}/kill", {"how": "vanish"})
            patience = 2 * self.stage.plan.believed_lag_seconds
            await asyncio.sleep(patience + self._rng.uniform(0, 1))

    async def _starting(self) -> None:
        """Within the first second of a leader, or even before there is one."""
        if self._rng.random() < 0.7:
            await eventually(self.stage.leader, "a leader", seconds=60, interval=0.05)
        await asyncio.sleep(self._rng.uniform(0, 1))

    async def _kill(self, name: str) -> None:
        stage = self.stage
        victim = await stage.leader() or self._rng.choice(stage.replicas)
        requests = await stage.account.requests()
        kill = Kill(await stage.account.now(), name, victim.name)
        await stage.end(victim)
        self.outcome.kills.append(kill)
        await asyncio.sleep(0.05)
        await count_cut_off(stage, kill, max(-1, len(requests) - 200))

    async def _until_a_create_waits(self, after: int) -> None:
        deadline = time.monotonic() + 8
        while time.monotonic() < deadline:
            for request in await self.stage.account.requests(after):
                if request["operation"] == "createPod" and request["answeredAt"] is None:
                    return
            await asyncio.sleep(0.01)

    async def _scale(self, replicas: int) -> None:
        self._replicas = min(replicas, MOST_REPLICAS + 2)
        await self.stage.scale("deployments", DEPLOYMENT, self._replicas)

    async def _scale_set(self, replicas: int) -> None:
        await self.stage.scale("statefulsets", STATEFUL_SET, replicas)

    async def _some_pods(self, most: int) -> list[dict[str, Any]]:
        pods = [
            pod
            for pod in await self.stage.pods()
            if pod["spec"].get("nodeName") == NODE and "deletionTimestamp" not in pod["metadata"]
        ]
        return self._rng.sample(pods, min(len(pods), self._rng.randint(1, most)))

    async def _calm(self) -> None:
        """Nobody is killed for a while: everything must come to rest."""
        await self.settle(self._replicas)

    async def settle(self, replicas: int) -> None:
        """The Deployment reaches its size, no pod hangs, and the bill agrees with the API."""
        await self._scale(replicas)
        await _eventually(self, lambda: self._has_settled(replicas), f"{replicas} replicas Running")
        await judge(self.stage, settled=True)
        await self._note_failures()

    async def _note_failures(self) -> None:
        failed = [pod for pod in await self.stage.pods() if pod["status"]["phase"] == "Failed"]
        self.outcome.failed_pods.update(pod["metadata"]["uid"] for pod in failed)

    async def _has_settled(self, replicas: int) -> bool:
        pods = [pod for pod in await self.stage.pods() if pod["spec"].get("nodeName") == NODE]
        living = [pod for pod in pods if pod["status"]["phase"] not in ("Failed", "Succeeded")]
        running = [pod for pod in living if pod["status"]["phase"] == "Running"]
        mine = [pod for pod in running if pod["metadata"]["labels"]["app"] == DEPLOYMENT]
        ending = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
        billing = ours((await self.stage.account.ask("/ledger"))["open"], self.stage)
        all_run = len(running) == len(living) == len(billing)
        return len(mine) == replicas and all_run and not ending

    async def finish(self) -> None:
        """The workloads recover, then go; nothing of them is left, also after a while."""
        await self.stage.account.call("DELETE", "/faults")
        await self.settle(FINAL_REPLICAS)
        await self._scale_set(0)
        await self.settle(0)
        await asyncio.sleep(2 * self.stage.plan.believed_lag_seconds)
        ledger = await judge(self.stage, settled=True)
        await forget_answered(self.stage, self.outcome.kills)
        left = ours(ledger["open"], self.stage)
        self.outcome.left_over = len(left)
        self.outcome.double_billed = len(ledger["doubleBilled"])
        self.outcome.instances = len({c["instance"] for c in ours(ledger["charges"], self.stage)})
        if left:
            raise VerdictError(f"left over: {left}")
        if len(self.outcome.failed_pods) > self._vanished:
            raise VerdictError(
                f"{self._vanished} instances were lost, but {len(self.outcome.failed_pods)} pods "
                f"failed: {self.outcome.failed_pods}"
            )


async def _eventually(run: Crashes, probe: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        await eventually(probe, what, seconds=RECOVERY_SECONDS, interval=0.3)
    except TimeoutError as error:
        raise VerdictError(f"{error}\n{await _situation(run.stage)}") from error


async def _situation(stage: CrashStage) -> str:
    """Pods as the API shows them beside the open bill, for a message."""
    rows = [
        f"{pod['metadata']['name']} {pod['metadata']['uid']} {pod['status']['phase']} "
        f"{pod['status'].get('reason', '')} on {pod['spec'].get('nodeName')} "
        f"deleted {pod['metadata'].get('deletionTimestamp')} "
        f"{pod['metadata'].get('annotations', {})} {pod['status'].get('containerStatuses')}"
        for pod in await stage.pods()
    ]
    ledger = await stage.account.ask("/ledger")
    bill = [f"{c['instance']} {c['podUid']} {c['pod']}" for c in ours(ledger["open"], stage)]
    logs = [f"{r.name} {r.exits}\n{stage.bed.log_tail(r.name, 30)}" for r in stage.replicas]
    return "\n".join(["-- pods", *rows, "-- bill", *bill, "-- logs", *logs])


async def run(plan: Plan, keep: Path | None = None) -> Outcome:
    """The whole run; raises VerdictError at the first thing that must not happen."""
    outcome = Outcome()
    async with set_up(plan) as stage:
        begun = time.monotonic()
        try:
            await script_faults(stage, FAULTS)
            crashes = Crashes(stage, outcome)
            await crashes.play()
            await crashes.finish()
        finally:
            outcome.seconds = time.monotonic() - begun
            if keep is not None:
                _keep_logs(stage, keep)
    return outcome


def _keep_logs(stage: CrashStage, keep: Path) -> None:
    keep.mkdir(parents=True, exist_ok=True)
    for log in stage.bed.folder.glob("*.log"):
        shutil.copy(log, keep)


def main() -> int:
    """Parse the flags, run, print what it came to."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.crashes", description=__doc__)
    defaults = Plan()
    parser.add_argument("--kills", type=int, default=defaults.kills)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--speed", type=float, default=defaults.speed, help="the account's clock")
    parser.add_argument("--replicas", type=int, default=defaults.replicas, help="of the node")
    parser.add_argument("--terminate", action="store_true", help="SIGTERM instead of SIGKILL")
    parser.add_argument(
        "--trouble", action="append", default=[], choices=TROUBLES, help="may be repeated"
    )
    parser.add_argument("--only-trouble", action="store_true", help="no other rounds")
    parser.add_argument("--keep", type=Path, help="a folder for the logs")
    flags = parser.parse_args()
    plan = Plan(
        flags.kills,
        flags.seed,
        flags.speed,
        flags.replicas,
        flags.terminate,
        tuple(flags.trouble),
        flags.only_trouble,
    )
    begun = time.monotonic()
    try:
        outcome = asyncio.run(run(plan, flags.keep))
    except VerdictError as error:
        sys.stdout.write(f"FAILED after {time.monotonic() - begun:.0f} s: {error}\n")
        return 1
    sys.stdout.write(f"{outcome}\nwith start and stop: {time.monotonic() - begun:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
