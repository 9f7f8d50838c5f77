"""What the audience sees: a row for each change of the picture, headings, and the verdicts.

Fed by the stage with moments and by the acts with sentences; writes to standard output.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from tests.story.history import Moment
from tests.story.judge import Verdict
from tests.story.workloads import GPUS_PER_NODE, HOME_NODES, REPLICAS

HOME_GPUS = HOME_NODES * GPUS_PER_NODE
_SIGNS = {"ready": "●", "starting": "○", "training": "■", "free": "·"}
_PLAIN = {"ready": "#", "starting": "o", "training": "T", "free": "."}
_COLOURS = {"ready": 32, "starting": 33, "training": 34, "free": 90}
_ROW_SECONDS = 0.5
_BOLD, _GREEN, _RED, _YELLOW = 1, 32, 31, 33


class Show:
    """Prints a row at most twice a second; colours on a terminal, plain letters where it must.

    ``sizes`` are the GPUs of each virtual node.
    """

    def __init__(self, begun: float, sizes: Mapping[str, int]) -> None:
        self._begun = begun
        self._sizes = sizes
        self._colour = sys.stdout.isatty()
        encoding = (sys.stdout.encoding or "").lower().replace("-", "")
        self._signs = _SIGNS if encoding == "utf8" else _PLAIN
        self._last = 0.0
        self._shown = ""
        self._waiting = (0.0, "")
        self._is_over = False

    def legend(self) -> None:
        """What the signs mean."""
        words = {
            "ready": "serving",
            "starting": "starting",
            "training": "training",
            "free": "free GPU",
        }
        told = "   ".join(f"{self._sign(name)} {word}" for name, word in words.items())
        self._print(f"One sign is one GPU:   {told}")

    def act(self, title: str, now: float) -> None:
        """A heading."""
        self.flush()
        self._print("")
        self._print(self._paint(f"{self._time(now)}  {title}", _BOLD))

    def say(self, sentence: str) -> None:
        """One line of narration."""
        self.flush()
        self._print(f"{'':10}  {sentence}")

    def moment(self, moment: Moment, usd_per_hour: float, now: float) -> None:
        """A row, as soon as one is due again and if anything in it is new."""
        if not moment.nodes or self._is_over:  # the stage is still being set, or is dark already
            return
        # What changed since the last row, if nothing but the price, has no time of its own.
        at = moment.at if moment.at > self._last else now
        self._waiting = (at, self._row(moment, usd_per_hour))
        if now - self._last >= _ROW_SECONDS:
            self.flush()
            self._last = now

    def flush(self) -> None:
        """Print the row that waits for its turn."""
        at, row = self._waiting
        if row and row != self._shown:
            self._shown = row
            self._print(f"{self._time(at)}  {row}")

    def verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """What held and what did not, with figures; no row comes after it."""
        self._is_over = True
        for verdict in verdicts:
            mark = self._paint("held  ", _GREEN) if verdict.holds else self._paint("FAILED", _RED)
            self._print(f"  {mark}  {verdict.sentence}")
            self._print(f"          {verdict.figure}")

    def _row(self, moment: Moment, usd_per_hour: float) -> str:
        training = moment.training * GPUS_PER_NODE
        home = self._cells(training, moment.ready_home, moment.starting_home, HOME_GPUS)
        outside = "  ".join(
            f"{name} {self._cells(0, ready, starting, self._sizes.get(name, 0))}"
            for name, ready, starting in moment.nodes
        )
        serving = f"{moment.ready:2}/{REPLICAS}"
        if moment.ready < REPLICAS and self._colour:
            serving = self._paint(serving, _YELLOW)
        return (
            f"home {home}  {outside}  waiting {moment.waiting:2}  serving {serving}"
            f"  {usd_per_hour:5.2f} USD/h  gate {moment.gate}"
        )

    def _cells(self, training: int, ready: int, starting: int, size: int) -> str:
        counts = {"training": training, "ready": ready, "starting": starting}
        free = max(0, size - sum(counts.values()))
        return "".join(self._sign(name, count) for name, count in [*counts.items(), ("free", free)])

    def _sign(self, name: str, count: int = 1) -> str:
        return self._paint(self._signs[name] * count, _COLOURS[name]) if count else ""

    def _time(self, now: float) -> str:
        return f"{now - self._begun:8.1f} s"

    def _paint(self, text: str, colour: int) -> str:
        return f"\033[{colour}m{text}\033[0m" if self._colour else text

    def _print(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
