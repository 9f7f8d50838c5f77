"""From rounds to a table, ratios and verdicts on the aims. Pure text in, text out.

Fed by `measure`; printed and written by `__main__`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.measure import Round
from benchmarks.nodes import CANDIDATES, GO_LIFTED, KWOK, OURS

TIME_OF_KWOK = 1.5
PATCHES_PER_POD = 2.0
# A pod that is preempted, or a write repeated after a dropped connection, is no change of design.
_SLACK = 0.01

Rounds = Mapping[str, Sequence[Round]]


@dataclass(frozen=True, slots=True)
class Aim:
    """One thing to be reached, what was seen, and whether it is met; None without a peer."""

    sentence: str
    seen: str
    met: bool | None


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    value: Callable[[Round], float]
    form: str


_COLUMNS = (
    _Column("Running s", lambda r: r.running_seconds, ".1f"),
    _Column("gone s", lambda r: r.gone_seconds, ".1f"),
    _Column("CPU-s up", lambda r: r.running_cpu, ".2f"),
    _Column("CPU-s rest", lambda r: r.rest_cpu, ".2f"),
    _Column("CPU-s down", lambda r: r.gone_cpu, ".2f"),
    _Column("CPU-s all", lambda r: r.cpu, ".2f"),
    _Column("CPU-s start", lambda r: r.start_cpu, ".2f"),
    _Column("peak MiB", lambda r: r.peak_rss_mib, ".0f"),
)


def middle(rounds: Sequence[Round], value: Callable[[Round], float]) -> float:
    """The median over the rounds."""
    return median(value(each) for each in rounds)


def table(rounds: Rounds) -> str:
    """Medians with the least and the most, a line per candidate."""
    head = f"{'':20}{'pods':>6}" + "".join(f"{column.title:>18}" for column in _COLUMNS)
    lines = [head]
    for name, each in rounds.items():
        cells = "".join(f"{_cell(each, column):>18}" for column in _COLUMNS)
        lines.append(f"{name:20}{each[0].pods:>6}{cells}")
    return "\n".join(lines)


def _cell(rounds: Sequence[Round], column: _Column) -> str:
    values = sorted(column.value(each) for each in rounds)
    least, most = (format(value, column.form) for value in (values[0], values[-1]))
    return f"{format(median(values), column.form)} ({least}-{most})"


def requests(rounds: Rounds) -> str:
    """API requests per pod of the last round, by verb and resource."""
    lines = []
    for name, each in rounds.items():
        last = each[-1]
        lines.append(f"{name}: to Running: {_per_pod(last.to_running)}")
        lines.append(f"{'':{len(name)}}  to gone:    {_per_pod(last.to_gone)}")
        rest = ", ".join(f"{n} {what}" for what, n in sorted(last.at_rest.items()))
        lines.append(f"{'':{len(name)}}  at rest:    {rest or 'none'}")
    return "\n".join(lines)


def _per_pod(counts: Mapping[str, float]) -> str:
    shown = [f"{count:.2f} {what}" for what, count in counts.items() if count >= _SLACK]
    return ", ".join(shown) or "none"


def ratios(rounds: Rounds) -> str:
    """Ours over each peer that had the same number of pods."""
    ours = rounds.get(OURS)
    lines = []
    for name, theirs in rounds.items():
        if ours is None or name == OURS or theirs[0].pods != ours[0].pods:
            continue
        cells = [f"{column.title} {_ratio(ours, theirs, column):.2f}" for column in _COLUMNS]
        lines.append(f"{OURS} / {name}: " + ", ".join(cells))
    return "\n".join(lines)


def _ratio(ours: Sequence[Round], theirs: Sequence[Round], column: _Column) -> float:
    # A peer may have used less than the clock can tell.
    return middle(ours, column.value) / max(middle(theirs, column.value), 0.01)


def aims(rounds: Rounds) -> list[Aim]:
    """What this project promises, judged."""
    if OURS not in rounds:
        return []
    ours = rounds[OURS]
    patches = middle(ours, lambda r: r.to_running.get("patch pods/status", 0.0))
    gets = middle(ours, _gets)
    return [
        _time_aim(rounds, "all Running", lambda r: r.running_seconds),
        _cpu_aim(rounds),
        Aim(
            f"at most {PATCHES_PER_POD:g} status PATCHes per pod to Running",
            f"{patches:.3f}",
            patches <= PATCHES_PER_POD + _SLACK,
        ),
        Aim("no GET of pods", f"{gets:.3f} per pod", gets == 0),
    ]


def _gets(each: Round) -> float:
    return each.to_running.get("get pods", 0.0) + each.to_gone.get("get pods", 0.0)


def _time_aim(rounds: Rounds, what: str, value: Callable[[Round], float]) -> Aim:
    sentence = f"time to {what} at most {TIME_OF_KWOK:g} x kwok's"
    if KWOK not in rounds:
        return Aim(sentence, "kwok did not run", None)
    ratio = middle(rounds[OURS], value) / middle(rounds[KWOK], value)
    return Aim(sentence, f"{ratio:.2f} x", ratio <= TIME_OF_KWOK)


def _cpu_aim(rounds: Rounds) -> Aim:
    sentence = "CPU, up and down again, at most the Go virtual-kubelet's"
    if GO_LIFTED not in rounds:
        return Aim(sentence, "the Go virtual-kubelet did not run", None)
    ours, theirs = (middle(rounds[name], lambda r: r.cpu) for name in (OURS, GO_LIFTED))
    return Aim(sentence, f"{ours:.2f} s against {theirs:.2f} s", ours <= theirs)


def verdicts(found: Sequence[Aim]) -> str:
    """A line per aim."""
    words = {True: "PASS", False: "MISS", None: "n/a "}
    return "\n".join(f"{words[aim.met]}  {aim.sentence}: {aim.seen}" for aim in found)


def notes(rounds: Rounds) -> str:
    """Who ran, and how."""
    return "\n".join(f"{name}: {CANDIDATES[name].note}" for name in rounds)
