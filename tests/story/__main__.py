"""``python -m tests.story``: play the whole story, judge it, draw it; exit 0 only if all held."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

from tests.story import judge, settings
from tests.story.acts import ACTS, Script, Times, prepare
from tests.story.picture import draw
from tests.story.stage import NODES, Stage, StoryError, set_up
from tests.story.workloads import REPLICAS

SLACK_SECONDS = 15.0
PLAIN, CHECKED = "plain", "admission-check"
MODES = {PLAIN: "the scheduler preempts", CHECKED: "replicas move before training comes"}
_QUIET_SECONDS = 3.0
_SETTING = "A control plane, Kueue, the descheduler, Prometheus and two backends are being started."


async def play(script: Script, mode: str, pictures: Path) -> int:
    """Play every act on a stage of its own; the exit code."""
    begun = time.monotonic()
    sys.stdout.write(f"\nIn mode {mode}: {MODES[mode]}. {_SETTING}\n")
    sys.stdout.flush()
    async with set_up(admission_check=script.checked) as stage:
        times = Times()
        try:
            await prepare(stage, script.checked)
            for act in ACTS:
                if not times.cut:
                    await act(stage, times, script)
        except StoryError as fault:
            sys.stdout.write(f"\nThe story broke off: {fault}\n")
            return 1
        verdicts = _on_the_way(stage, times, script.checked)
        if not times.cut:
            verdicts += await _in_the_end(stage, times)
        stage.show.act("What held", time.time())
        stage.show.verdicts(verdicts)
        files = [pictures / f"story-{mode}.{suffix}" for suffix in ("svg", "png")]
        title = f"Training pushes, inference flows out and comes home ({mode}: {MODES[mode]})"
        draw(stage.history, stage.prices, times.injections, title, files)
    sys.stdout.write(f"\nPictures: {' '.join(map(str, files))}\n")
    if failed := judge.failures(verdicts):
        sys.stdout.write(f"\nThe story failed: {len(failed)} of {len(verdicts)} did not hold.\n")
        return 1
    sys.stdout.write(f"\nAll of it held. {time.monotonic() - begun:.0f} s.\n")
    return 0


def _on_the_way(stage: Stage, times: Times, checked: bool) -> list[judge.Verdict]:
    history, most = stage.history, settings.MAX_IN_FLIGHT
    limit = settings.START_SECONDS + SLACK_SECONDS
    out, both = "on the way out", "in either direction"
    if checked:
        least = REPLICAS - most
        outward = [
            judge.never_below(history, times.serving, times.returning, least, out),
            judge.never_below(history, times.serving, times.home, least, both),
        ]
    else:
        outward = [
            judge.outside_in_time(history, limit),
            judge.all_ready_again(history, REPLICAS, limit),
        ]
    return [
        judge.nothing_missed(history),
        *outward,
        judge.few_in_flight(history, times.returning, times.home, REPLICAS, most),
        *([judge.pushed_again(history, times.interrupted)] if times.interrupted else []),
    ]


async def _in_the_end(stage: Stage, times: Times) -> list[judge.Verdict]:
    history, injections = stage.history, zip(times.injections, times.returns, strict=True)
    ledgers = await stage.ledgers()
    await asyncio.sleep(_QUIET_SECONDS)
    return [
        *(judge.still_while(history, injection, since) for injection, since in injections),
        # Who comes home twice begins with the dearest twice.
        judge.dearest_first(history, [name for name, _, _ in NODES], times.returning),
        judge.all_home(history, REPLICAS),
        judge.bill_stops(ledgers, await stage.ledgers(), times.home),
    ]


def main() -> int:
    """Parse the flags and play."""
    parser = argparse.ArgumentParser(prog="python -m tests.story", description=__doc__)
    parser.add_argument("--mode", choices=MODES, help="default: one after the other")
    parser.add_argument(
        "--pictures", type=Path, default=Path(".cache/story"), help="where the pictures go"
    )
    parser.add_argument(
        "--again", action="store_true", help="training comes twice, the second time in mid-return"
    )
    parser.add_argument("--plant-loss", action="store_true", help="lose a replica; must fail")
    flags = parser.parse_args()
    codes = []
    for mode in [flags.mode] if flags.mode else MODES:
        # The way home is the same in both: what the signal does to it is tried in one.
        lies = mode == PLAIN and not flags.again
        script = Script(flags.plant_loss, lies, flags.again, mode == CHECKED)
        codes.append(asyncio.run(play(script, mode, flags.pictures)))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
