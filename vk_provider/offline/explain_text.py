"""Reports of ``explain`` as text that is pleasant to read. Pure.

Fed by :mod:`vk_provider.offline.explain`; feeds standard output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import yaml

from vk_provider.faults import FieldProblem
from vk_provider.offline.explain import Judgement, Report
from vk_provider.offline.node_ranking import NodeRanking
from vk_provider.offline.workloads import Workload
from vk_provider.output import Style
from vk_provider.pods.types import Offer, Stock

_PRICE_UNKNOWN = "known only with an account or a simulator, which --online asks"
_SHOWN_OFFERS = 8


def render(reports: Sequence[Report], ignored: Sequence[str], style: Style) -> str:
    """Everything, workload by workload, and a last line that says what the exit code says."""
    lines: list[str] = []
    for report in reports:
        lines += [*_report(report, style), ""]
    if ignored:
        lines += [style.wrapped(f"No pod template in: {', '.join(ignored)}"), ""]
    able = sum(report.can_run for report in reports)
    summary = f"{able} of {_count(len(reports), 'workload')} can run on a virtual node."
    lines.append(style.good(summary) if able == len(reports) else style.bad(summary))
    return "\n".join(lines)


def _report(report: Report, style: Style) -> Iterator[str]:
    workload = report.workload
    place = f"{workload.document.file}:{workload.line}"
    yield f"{style.strong(str(workload))}  {style.dim(place)}"
    if report.obstacle:
        yield style.bad(style.wrapped(report.obstacle, "  no    ", "        "))
        return  # what a backend would be asked for is beside the point
    for note in report.notes:
        text, *to_copy = note.splitlines()
        yield style.wrapped(text, "  note  ", "        ")
        yield from (f"          {line}" for line in to_copy)
    if report.unseen:
        names = ", ".join(str(key) for key in report.unseen)
        text = f"not supplied with -f, so their keys were not checked: {names}"
        yield style.wrapped(text, "  note  ", "        ")
    for judgement in report.judgements:
        yield ""
        yield from _judgement(report.workload, judgement, style)
    for ranking in report.rankings:
        yield from _ranking(ranking, style)


def _ranking(ranking: NodeRanking, style: Style) -> Iterator[str]:
    """Worth a table where there is a choice, or where something is left out."""
    if len(ranking.candidates) + len(ranking.refused) < 2:
        return
    yield ""
    yield f"  {style.strong(f'ranking of node {ranking.node}')}  {style.dim(ranking.policy)}"
    tried = [(each.backend, each.offer, each.reason) for each in ranking.candidates]
    left = [(each.backend, each.offer, f"no: {each.message}") for each in ranking.refused]
    rows = [(str(at), *row) for at, row in enumerate(tried[:_SHOWN_OFFERS], 1)]
    rows += [("-", *row) for row in left[:_SHOWN_OFFERS]]
    width = max(len(_place(backend, offer)) for _, backend, offer, _ in rows)
    for mark, backend, offer, why in rows:
        yield f"       {mark:>2}  {_place(backend, offer):{width}}  {why}".rstrip()
    unseen = len(tried) + len(left) - len(rows)
    if unseen:
        yield f"       and {unseen} more"


def _place(backend: str, offer: Offer) -> str:
    return f"{backend}: {_words(offer) or offer.id}"


def _judgement(workload: Workload, judgement: Judgement, style: Style) -> Iterator[str]:
    candidate = judgement.candidate
    name = style.strong(candidate.name)
    if candidate.node.capacity:
        name += f" of node {candidate.node.name}"
    if candidate.name != candidate.provider_name:
        name += f" ({candidate.provider_name})"
    if not judgement.can_run:
        # A backend that could not even be built has not said no.
        word = style.dim("skip") if candidate.problems else style.bad("no  ")
        yield f"  {word} {name}"
        for reason in judgement.reasons:
            yield _field(workload, reason.path, reason.message, style, "- ")
        return
    yield f"  {style.good('yes')}  {name}"
    yield from _prices(judgement.offers, style)
    for note in judgement.notes:
        yield _field(workload, note.path, note.note, style, "note  ")
    yield "       request"
    yield from (f"         {line}" for line in _yaml(judgement.request))


def _prices(offers: Sequence[Offer], style: Style) -> Iterator[str]:
    if all(offer.usd_per_hour is None for offer in offers):
        yield f"       price    {style.dim(_PRICE_UNKNOWN)}"
    elif len(offers) == 1:
        yield f"       price    {_price(offers[0])}"
    named = [offer for offer in offers if offer.gpu_type or offer.data_center]
    if not named:
        return
    yield "       offers   in the order they are tried"
    width = max(len(_words(offer)) for offer in named[:_SHOWN_OFFERS])
    for offer in named[:_SHOWN_OFFERS]:
        yield f"         {_words(offer):{width}}  {_price(offer)}{_stock(offer)}".rstrip()
    if len(named) > _SHOWN_OFFERS:
        yield f"         and {len(named) - _SHOWN_OFFERS} more"


def _words(offer: Offer) -> str:
    gpu = f"{offer.gpu_count} x {offer.gpu_type}" if offer.gpu_type else ""
    return " in ".join(part for part in (gpu, offer.data_center) if part)


def _price(offer: Offer) -> str:
    return "" if offer.usd_per_hour is None else f"{offer.usd_per_hour:.4g} USD/h"


def _stock(offer: Offer) -> str:
    return "" if offer.stock is Stock.UNKNOWN else f", stock {offer.stock.lower()}"


def _field(workload: Workload, path: str, message: str, style: Style, mark: str) -> str:
    """A path can be copied only in one piece; so it has a line of its own if both don't fit."""
    text = str(FieldProblem(workload.in_document(path), message)) if path else message
    first, rest = f"       {mark}", " " * (9 if mark == "- " else 13)
    return style.wrapped(text, first, rest)


class _Dumper(yaml.SafeDumper):
    """YAML that shows a script line by line."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def _yaml(value: object) -> list[str]:
    text = yaml.dump(_plain(value), Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
    return text.splitlines()


def _plain(value: object) -> object:
    """Tuples and read-only mappings as what YAML knows."""
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
