"""The story as one picture: where replicas serve, what is paid, and when the signal lied.

Fed by the history, the prices and the acts' times; writes an SVG and a PNG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tests.story.history import History, Moment
from tests.story.judge import Injection
from tests.story.workloads import GPUS_PER_NODE, REPLICAS

T = TypeVar("T")
Count = Callable[[Moment], int]
_SERIES: tuple[tuple[str, str, Count], ...] = (
    ("serves at home", "#2e7d32", lambda m: m.ready_home),
    ("serves outside", "#1e88e5", lambda m: m.ready_outside),
    ("starting", "#ffb300", lambda m: m.starting_home + m.starting_outside),
    ("waiting for a node", "#e53935", lambda m: m.waiting),
)
_TRAINING = "#6a1b9a"
_GATES = {"open": "#66bb6a", "hold": "#cfd8dc", "return": "#64b5f6"}
_ABOVE = (1, 0.99)


def draw(
    history: History,
    prices: Sequence[tuple[float, float]],
    injections: Sequence[Injection],
    title: str,
    files: Sequence[Path],
) -> None:
    """Write the picture in the format that each file's suffix says."""
    figure = Figure(figsize=(12, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    pods, bars, paid = figure.subplots(3, 1, sharex=True, height_ratios=[4, 1.1, 1.6])
    begun, moments = _beginning(history), _closed(history, prices)
    _draw_pods(pods, moments, begun)
    for each in injections:
        _mark(pods, each, begun)
    _draw_bars(bars, moments, begun)
    _draw_price(paid, prices, begun)
    pods.set_title(title, loc="left", fontweight="bold", pad=24)
    for axes in (pods, bars, paid):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(0, moments[-1].at - begun)
    paid.set_xlabel("seconds")
    # Letters as letters, and the same picture of the same story to the byte.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "story"}):
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            metadata = {"Date": None} if file.suffix == ".svg" else None
            figure.savefig(file, dpi=130, metadata=metadata)


def _beginning(history: History) -> float:
    """Shortly before the first replica: the set-up is no part of the story."""
    some = [m.at for m in history.moments if m.waiting or m.starting_home or m.ready_home]
    return (some or [history.moments[0].at])[0] - 1


def _closed(history: History, prices: Sequence[tuple[float, float]]) -> list[Moment]:
    """The moments, the last one drawn to the end of what was watched."""
    end = max([history.now.at, *(at for at, _ in prices[-1:])])
    return [*history.moments, replace(history.now, at=end)]


def _draw_pods(axes: Axes, moments: Sequence[Moment], begun: float) -> None:
    times = [moment.at - begun for moment in moments]
    layers = [[count(moment) for moment in moments] for _, _, count in _SERIES]
    colours, names = [each[1] for each in _SERIES], [each[0] for each in _SERIES]
    axes.stackplot(times, *layers, step="post", colors=colours, labels=names)
    axes.axhline(REPLICAS, color="black", linewidth=0.8, linestyle=":")
    axes.set_ylabel("inference replicas")
    most = max(map(sum, zip(*layers, strict=True)))
    axes.set_ylim(0, max(most * 1.04, REPLICAS * 1.17))
    axes.set_yticks(range(0, most + 1, 4))
    axes.legend(ncols=len(_SERIES), loc="lower right", bbox_to_anchor=_ABOVE, frameon=False)


def _mark(axes: Axes, injection: Injection, begun: float) -> None:
    since, until = injection.since - begun, injection.until - begun
    axes.axvspan(since, until, facecolor="none", edgecolor="black", alpha=0.2, hatch="//")
    axes.text((since + until) / 2, REPLICAS + 0.3, f"{injection.name}\nsignal", ha="center")


def _draw_bars(axes: Axes, moments: Sequence[Moment], begun: float) -> None:
    """Training, and each gate, as bars of time."""
    names = [name for name, _ in moments[-1].gates]
    for row, name in enumerate(names):
        gates = [dict(moment.gates).get(name, "") for moment in moments]
        for since, until, gate in _spans(moments, gates):
            span = (since - begun, until - since)
            axes.broken_barh([span], (row - 0.4, 0.8), color=_GATES.get(gate, "white"))
    _draw_training(axes, moments, begun, len(names))
    rows = [*(f"gate {name}" for name in names), "training"]
    axes.set_yticks(range(len(rows)), rows)
    patches = [Patch(color=colour, label=gate) for gate, colour in _GATES.items()]
    axes.legend(handles=patches, ncols=3, loc="lower right", bbox_to_anchor=_ABOVE, frameon=False)


def _draw_training(axes: Axes, moments: Sequence[Moment], begun: float, row: int) -> None:
    pods = [moment.training for moment in moments]
    for since, until, count in _spans(moments, pods):
        if count:
            axes.broken_barh([(since - begun, until - since)], (row - 0.4, 0.8), color=_TRAINING)
    most = [(s, u) for s, u, count in _spans(moments, pods) if count == max(pods) > 0]
    for since, until in most[:1]:
        where = ((since + until) / 2 - begun, row)
        label = f"{max(pods) * GPUS_PER_NODE} GPUs"
        axes.text(*where, label, color="white", ha="center", va="center")


def _spans(moments: Sequence[Moment], values: Sequence[T]) -> Iterator[tuple[float, float, T]]:
    """Since when, until when and what, for each stretch of one value."""
    changes = [
        (moment.at, value)
        for number, (moment, value) in enumerate(zip(moments, values, strict=True))
        if number == 0 or value != values[number - 1]
    ]
    ends = [*(at for at, _ in changes[1:]), moments[-1].at]
    for (since, value), until in zip(changes, ends, strict=True):
        yield since, until, value


def _draw_price(axes: Axes, prices: Sequence[tuple[float, float]], begun: float) -> None:
    # Only where it changes: it was looked at far more often.
    changes = [
        each
        for number, each in enumerate(prices)
        if number in (0, len(prices) - 1) or each[1] != prices[number - 1][1]
    ]
    times, paid = [at - begun for at, _ in changes], [usd for _, usd in changes]
    axes.fill_between(times, paid, step="post", color="#90a4ae")
    axes.step(times, paid, where="post", color="#37474f")
    axes.set_ylabel("USD per hour")
    axes.set_ylim(bottom=0)
