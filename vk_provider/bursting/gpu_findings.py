"""What the answers of a monitoring system say about nodes: findings, by rule. Pure.

A rule is a query and what its samples mean: more than a limit (perhaps another one for this model),
an XID of some class, or a verdict that an alert carries as a label. A sample that names no node of
ours says nothing.

Fed by ``controllers.gpu_health`` with rules and samples; feeds
:mod:`vk_provider.bursting.gpu_health`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vk_provider.bursting import names
from vk_provider.bursting.picture import HomeNode

HOSTNAME = "kubernetes.io/hostname"
_DIGITS = 9
NODE_LABELS = ("node", "Hostname", "nodename", "kubernetes_node", "exported_node", "instance")
"""Where exporters write the node's name, in the order in which they are believed."""
SEVERITY: Mapping[str | None, int] = {
    None: 0,
    names.TRAINING_UNFIT: 1,
    names.DRAIN: 2,
    names.DEAD: 3,
}
"""How bad a value of the gpu-health taint is; none is good."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of an instant query's answer."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class HealthRule:
    """What the samples of one query mean.

    ``verdict`` is the value of the taint. ``above`` is the limit (samples must be larger);
    ``above_by_model`` replaces it for models that begin so, the longest beginning first.
    ``xid_classes`` makes it a rule about XIDs: verdict by number, ``""`` for harmless ones; the
    number stands in the label ``xid``, else it is the sample. ``verdict_label`` reads the verdict
    from a label.
    """

    name: str
    query: str
    verdict: str = names.TRAINING_UNFIT
    above: float = 0.0
    above_by_model: Mapping[str, float] = field(default_factory=dict)
    xid_classes: Mapping[int, str] | None = None
    verdict_label: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a node now."""

    node: str
    verdict: str
    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}" if self.detail else self.rule


def addresses_of(nodes: Iterable[HomeNode]) -> dict[str, str]:
    """The node by each name that a monitoring system may know it under."""
    known: dict[str, str] = {}
    for node in nodes:
        known[node.labels.get(HOSTNAME, node.name)] = node.name
    # A node's own name wins over somebody else's hostname.
    return known | {node.name: node.name for node in nodes}


def node_of(labels: Mapping[str, str], known: Mapping[str, str]) -> str | None:
    """Whom a sample is about; a port behind the name does not matter."""
    for label in NODE_LABELS:
        shown = labels.get(label, "")
        found = known.get(shown) or known.get(shown.rpartition(":")[0])
        if found is not None:
            return found
    return None


def observed(samples: Iterable[Sample], known: Mapping[str, str]) -> frozenset[str]:
    """The nodes that are measured at all: silence about any other is no good news."""
    return _nodes((one for one in samples if math.isfinite(one.value)), known)


def unreadable(
    rule: HealthRule, samples: Iterable[Sample], known: Mapping[str, str]
) -> frozenset[str]:
    """The nodes about which a rule's answer says nothing that can be understood: no good news."""
    return _nodes((one for one in samples if not _is_readable(rule, one)), known)


def _nodes(samples: Iterable[Sample], known: Mapping[str, str]) -> frozenset[str]:
    found = (node_of(sample.labels, known) for sample in samples)
    return frozenset(node for node in found if node is not None)


def findings(
    rule: HealthRule, samples: Sequence[Sample], known: Mapping[str, str]
) -> Iterator[Finding]:
    """What one rule's samples say."""
    for sample in samples:
        node = node_of(sample.labels, known)
        if node is None or not _is_readable(rule, sample):
            continue
        verdict, detail = _judge(rule, sample)
        if SEVERITY.get(verdict):
            yield Finding(node, verdict, _rule_name(rule, sample), detail)


def _judge(rule: HealthRule, sample: Sample) -> tuple[str, str]:
    """The verdict (empty: nothing is wrong) and its words."""
    if rule.xid_classes is not None:
        return _judge_xid(rule, sample)
    if rule.verdict_label:
        return sample.labels.get(rule.verdict_label, ""), _device(sample)
    limit = _limit(rule, sample.labels.get("modelName", ""))
    if sample.value <= limit:
        return "", ""
    shown = f"{_device(sample)} {sample.value:g}{rule.unit}, limit {limit:g}{rule.unit}"
    return rule.verdict, shown.strip()


def _is_readable(rule: HealthRule, sample: Sample) -> bool:
    if not math.isfinite(sample.value):
        return False
    return rule.xid_classes is None or sample.value <= rule.above or _xid(sample) is not None


def _judge_xid(rule: HealthRule, sample: Sample) -> tuple[str, str]:
    classes, number = rule.xid_classes or {}, _xid(sample)
    if sample.value <= rule.above or number is None:
        return "", ""
    return classes.get(number, rule.verdict), f"{_device(sample)} XID {number}".strip()


def _xid(sample: Sample) -> int | None:
    """The number in the label, else the sample itself; None if it is none that could be."""
    if label := re.fullmatch("[0-9]+", sample.labels.get("xid", "")):
        return int(label[0]) if len(label[0]) <= _DIGITS else None
    is_whole = sample.value % 1 == 0 and abs(sample.value) < 10**_DIGITS
    return int(sample.value) if is_whole else None


def _limit(rule: HealthRule, model: str) -> float:
    fitting = [start for start in rule.above_by_model if model.startswith(start)]
    return rule.above_by_model[max(fitting, key=len)] if fitting else rule.above


def _device(sample: Sample) -> str:
    """Which part of the node, as a person finds it."""
    labels = sample.labels
    if gpu := labels.get("gpu") or labels.get("UUID"):
        return f"GPU {gpu}"
    return labels.get("device", "")


def _rule_name(rule: HealthRule, sample: Sample) -> str:
    return sample.labels.get("alertname", rule.name) if rule.verdict_label else rule.name
