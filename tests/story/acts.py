"""The acts of the story, in order. Each waits for what it shows, or raises StoryError.

Fed by ``stage``; leaves in :class:`Times` when what happened, for the judge.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.rig.kueue import create
from tests.rig.polling import eventually
from tests.rig.state_metrics import Fault
from tests.story import settings, workloads
from tests.story.history import OPEN
from tests.story.judge import Injection
from tests.story.stage import Stage
from tests.story.workloads import FINISH, HOME_NODES, REPLICAS

_TRAINING_SECONDS = 8.0
_LOOK_SECONDS = 2.0
_LOSS_SECONDS = 2.0
_WHOLE_CYCLES = 2 * settings.CYCLE_SECONDS + 1
_TURNS_AWAY_SECONDS = settings.STALE_SECONDS + 3


@dataclass(slots=True)
class Times:
    """When what happened, in seconds of the wall clock."""

    serving: float = 0.0
    """All replicas serve; from here on none may be missing that need not be."""
    returning: float = 0.0
    """Training is over: from here on pods come home. If it came twice, the second time."""
    interrupted: float = 0.0
    """Training came again."""
    home: float = 0.0
    injections: list[Injection] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)
    """For each injection, from when on the evictions before it count."""
    cut: bool = False
    """The story ends here, with what was planted."""


@dataclass(frozen=True, slots=True)
class Script:
    """What happens. ``lose`` plants a loss on the way home that nobody should make; ``lies`` is
    whether the signal goes wrong on the way."""

    lose: bool = False
    lies: bool = True
    again: bool = False
    """Training comes once more when half of the way home is done."""
    checked: bool = False
    """Training waits until inference has moved out of its way."""


async def node_registers(stage: Stage, times: Times, script: Script) -> None:
    """The virtual nodes are there, and their gates shut: home has room."""
    stage.show.act("Two nodes that are not there. Home has room, so their gates shut", time.time())
    stage.show.legend()
    await stage.until("both gates at hold", lambda: stage.history.now.gate == "hold")


async def home_serves(stage: Stage, times: Times, script: Script) -> None:
    """Inference fills home."""
    stage.show.act(f"{REPLICAS} replicas of inference start, all of them at home", time.time())
    await stage.bed.apply(workloads.SERVING)
    await stage.until("all at home", lambda: stage.history.now.ready_home == REPLICAS)
    times.serving = time.time()


async def training_arrives(stage: Stage, times: Times, script: Script) -> None:
    """Kueue admits a gang; the scheduler preempts inference; the gate opens; pods run outside."""
    await asyncio.sleep(_LOOK_SECONDS)
    if script.checked:
        await _training_waits(stage)
        return
    stage.show.act("Training arrives: Kueue admits both pods of a gang at once", time.time())
    await stage.bed.apply(workloads.training_job(workloads.TRAINING))
    await stage.until("training holds home", lambda: stage.history.now.training == HOME_NODES)
    stage.show.say("the scheduler has preempted inference; nothing of it fits at home any more")
    await stage.until("a gate opens", lambda: OPEN in stage.history.now.gate)
    stage.show.say("a gate opens")
    await stage.until("all outside", lambda: stage.history.now.ready_outside == REPLICAS)
    stage.show.say("everything serves again, from outside")
    await asyncio.sleep(_TRAINING_SECONDS)


async def _training_waits(stage: Stage) -> None:
    """Kueue holds the gang until inference serves from outside; then it comes in."""
    stage.show.act("Training arrives, and waits: inference moves out of its way", time.time())
    await stage.bed.apply(workloads.training_job(workloads.TRAINING))
    await stage.until("all outside", lambda: stage.history.now.ready_outside >= REPLICAS)
    stage.show.say("everything serves from outside as well")
    await stage.until("training holds home", lambda: stage.history.now.training == HOME_NODES)
    stage.show.say("training has home")
    await asyncio.sleep(_TRAINING_SECONDS)


async def training_ends(stage: Stage, times: Times, script: Script) -> None:
    """The job completes, home is free again, and the gates turn to `return`."""
    stage.show.act("Training is done: home is free", time.time())
    chosen = ("-l", f"app={workloads.TRAINING}")
    await stage.bed.kubectl("annotate", "pod", *chosen, f"{FINISH}=true")
    times.returning = time.time()
    await stage.until("training gone", lambda: stage.history.now.training == 0)
    await stage.until("a gate at return", lambda: "return" in stage.history.now.gate)


async def some_come_home(stage: Stage, times: Times, script: Script) -> None:
    """The descheduler brings pods home; three times the signal goes wrong, and nobody is moved."""
    most = settings.MAX_IN_FLIGHT
    stage.show.act(f"Pods come home, {most} at a time, the most expensive first", time.time())
    faults: list[tuple[str, Callable[[Stage], Awaitable[None]]]] = [
        ("stale", _hang),
        ("empty", _empty),
        ("shrunken", _shrink),
    ]
    since = times.returning
    for name, begin in faults if script.lies or script.lose else ():
        await _evicted(stage, since, most)
        if script.lose:
            await _lose(stage)
            times.cut, times.home = True, time.time()
            return
        # In the middle of the way: nobody is moving just now, and the next ones are about to.
        await stage.until("a gate at return again", lambda: _is_about_to_move(stage))
        times.returns.append(since)
        since = await _inject(stage, times, name, begin)


async def training_comes_again(stage: Stage, times: Times, script: Script) -> None:
    """In the middle of the way home only the gate can react: the descheduler does not look."""
    if not script.again:
        return
    half = REPLICAS // 4
    await stage.until("some at home", lambda: stage.history.now.ready_home >= half)
    stage.show.act("Training comes again, in the middle of the way home", time.time())
    times.interrupted = time.time()
    await stage.bed.apply(workloads.training_job(f"{workloads.TRAINING}-again"))
    await stage.until("training holds home", lambda: stage.history.now.training == HOME_NODES)
    await stage.until("all outside", lambda: stage.history.now.ready_outside == REPLICAS)
    stage.show.say("everything serves again, from outside")
    await training_ends(stage, times, script)


async def all_come_home(stage: Stage, times: Times, script: Script) -> None:
    """Signals are right: the rest follows."""
    if script.lies:
        stage.show.act("The signal is right again: the rest comes home", time.time())
    await stage.until("all at home", lambda: stage.history.now.ready_home == REPLICAS, 120)
    await stage.until("nobody outside", lambda: not _outside(stage), 30)
    times.home = time.time()


ACTS: tuple[Callable[[Stage, Times, Script], Awaitable[None]], ...] = (
    node_registers,
    home_serves,
    training_arrives,
    training_ends,
    some_come_home,
    training_comes_again,
    all_come_home,
)


async def prepare(stage: Stage, checked: bool) -> None:
    """The training queue, which an administrator makes once; with a check, if training waits."""
    if not checked:
        await create(stage.bed, workloads.training_queue())
        return
    names = [{"name": workloads.CHECK["metadata"]["name"]}]
    strategy = {"admissionChecks": names}
    queue = workloads.training_queue(admissionChecksStrategy=strategy)
    await create(stage.bed, [workloads.CHECK, *queue])
    await eventually(lambda: _is_active(stage), "the queue Active: somebody minds its check")


async def _is_active(stage: Stage) -> bool:
    path = f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{workloads.TRAINING}"
    conditions = (await stage.bed.get_json(path)).get("status", {}).get("conditions") or ()
    return any((one["type"], one["status"]) == ("Active", "True") for one in conditions)


def _is_about_to_move(stage: Stage) -> bool:
    now = stage.history.now
    return "return" in now.gate and now.ready == REPLICAS


def _outside(stage: Stage) -> int:
    return stage.history.now.ready_outside + stage.history.now.starting_outside


async def _evicted(stage: Stage, since: float, count: int) -> None:
    await stage.until(f"{count} evictions", lambda: len(stage.history.evictions(since)) >= count)


async def _inject(
    stage: Stage, times: Times, name: str, begin: Callable[[Stage], Awaitable[None]]
) -> float:
    """Let the signal go wrong for two cycles of the descheduler; return when it was right again."""
    stage.show.act(f"The signal goes wrong: {name}. Nobody may be moved", time.time())
    since = time.time()
    await begin(stage)
    await stage.until(
        "the gates leave return",
        lambda: "return" not in stage.history.now.gate,
        _TURNS_AWAY_SECONDS,
    )
    await asyncio.sleep(max(0.0, since + _WHOLE_CYCLES - time.time()))
    until = time.time()
    times.injections.append(Injection(name, since, until))
    stage.show.say("the signal is right again")
    await _recover(stage)
    return until


async def _hang(stage: Stage) -> None:
    """Prometheus does not answer any more."""
    await stage.bed.signal("prometheus", signal.SIGSTOP)


async def _empty(stage: Stage) -> None:
    """kube-state-metrics has just been restarted and knows nothing yet."""
    stage.state_metrics.fault = Fault.EMPTY


async def _shrink(stage: Stage) -> None:
    """Half of the nodes are missing from the signal."""
    stage.state_metrics.fault = Fault.SHRUNKEN


async def _recover(stage: Stage) -> None:
    stage.state_metrics.fault = Fault.NONE
    await stage.bed.signal("prometheus", signal.SIGCONT)


async def _lose(stage: Stage) -> None:
    """Somebody deletes a replica that serves, while two are on their way already."""
    victim = stage.history.serving()[0].name
    stage.show.say(f"somebody deletes {victim}, which nobody should")
    await stage.bed.kubectl("delete", "pod", victim, "--wait=false")
    await asyncio.sleep(_LOSS_SECONDS)
