"""From samples to a table, ratios and verdicts on the aims. Pure text in, text out.

Fed by `measure`; printed and written by `__main__`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.report import Aim
from benchmarks.streams.measure import Found, Sample, Wave
from benchmarks.streams.nodes import GO, OURS

GROWTH, GROWTH_MIB = 1.1, 8.0
"""Memory is flat if the last wave leaves no more behind than this, beside the first one's."""
NOTES = f"""\
{OURS}: process provider, shipped identity; WebSocket as far as the node, SPDY where kubectl asks
{GO}: k8s.io/cri-streaming and k8s.io/cri-client (the kubelet's log reader) 0.36.3, one hop less
than on a real node and no authorization; the API server speaks SPDY to it"""


@dataclass(frozen=True, slots=True)
class _Bound:
    """How ours is to compare: at least, or at most, so many times the peer's."""

    prefix: str
    times: float
    at_most: bool = False

    def holds(self, ratio: float) -> bool:
        """Whether a ratio is within it."""
        return ratio <= self.times if self.at_most else ratio >= self.times


_BOUNDS = (
    _Bound("exec first byte", 1.5, at_most=True),
    _Bound("exec stdout", 0.7),
    _Bound("log follow", 1.0),
    _Bound("port-forward", 0.7),
)


def _whats(found: Found) -> list[str]:
    return list(dict.fromkeys(each.what for each in found.samples))


def _of(found: Found, node: str, what: str) -> list[Sample]:
    return [each for each in found.samples if (each.node, each.what) == (node, what)]


def _cell(samples: Sequence[Sample]) -> str:
    values = sorted(each.value for each in samples)
    form = ".1f" if values[-1] < 100 else ".0f"
    middle, least, most = (format(v, form) for v in (median(values), values[0], values[-1]))
    return f"{middle} ({least}-{most})"


def ratio(found: Found, what: str) -> float:
    """Ours over the peer's, of medians."""
    ours, theirs = (median(s.value for s in _of(found, node, what)) for node in (OURS, GO))
    return ours / theirs


def table(found: Found) -> str:
    """Medians with the least and the most, the ratio, and the CPU seconds of each node."""
    head = f"{'':36}{OURS:>26}{GO:>26}{'ratio':>8}{'CPU-s':>16}"
    lines = [head]
    for what in _whats(found):
        ours, theirs = (_of(found, node, what) for node in (OURS, GO))
        cpu = " / ".join(f"{median(s.cpu for s in samples):.2f}" for samples in (ours, theirs))
        times = f"{ratio(found, what):.2f}"
        lines.append(f"{what:36}{_cell(ours):>26}{_cell(theirs):>26}{times:>8}{cpu:>16}")
    return "\n".join(lines)


def crowd(found: Found) -> str:
    """A line for each wave."""
    lines = [f"{'commands at once':20}{'':>6}{'before MiB':>12}{'peak':>8}{'after':>8}{'CPU-s':>8}"]
    for wave in found.waves:
        figures = f"{wave.before:>12.1f}{wave.peak:>8.1f}{wave.after:>8.1f}{wave.cpu:>8.2f}"
        lines.append(f"{wave.node:20}{wave.commands:>6}{figures}")
    return "\n".join(lines)


def load(found: Found) -> str:
    """How busy the machine was, ourselves included."""
    loads = sorted(each.load for each in found.samples)
    return f"load average while measuring: {loads[0]:.1f} to {loads[-1]:.1f}"


def aims(found: Found) -> list[Aim]:
    """What this project promises, judged."""
    return [*(_aim(found, what) for what in _whats(found)), *_flat(found.waves)]


def _aim(found: Found, what: str) -> Aim:
    bound = next(each for each in _BOUNDS if what.startswith(each.prefix))
    times, word = ratio(found, what), "at most" if bound.at_most else "at least"
    sentence = f"{what}: {word} {bound.times:g} x the Go server's"
    return Aim(sentence, f"{times:.2f} x", bound.holds(times))


def _flat(waves: Sequence[Wave]) -> list[Aim]:
    ours = [wave for wave in waves if wave.node == OURS]
    if len(ours) < 2:
        return []
    allowed = max(ours[0].after * GROWTH, ours[0].after + GROWTH_MIB)
    seen = f"{ours[0].after:.0f} MiB after the first wave, {ours[-1].after:.0f} after the last"
    sentence = f"{ours[0].commands} commands at once leave no memory behind"
    return [Aim(sentence, seen, ours[-1].after <= allowed)]
