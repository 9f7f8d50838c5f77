"""The block ``gpuHealth`` of kind ``Bursting``: which findings taint which nodes how. Pure.

The default rules need dcgm-exporter and node_exporter; whatever your Prometheus alerts on already
taints as well, where an alert carries the label ``gpu_health``.
Fed by :mod:`vk_provider.settings_bursting`; read by ``controllers.gpu_health``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from vk_provider.bursting import names
from vk_provider.bursting.gpu_findings import HealthRule
from vk_provider.bursting.gpu_health import HealthPolicy
from vk_provider.fields import Fields

HOT_CELSIUS = 78.0
VERDICTS = (names.TRAINING_UNFIT, names.DRAIN, names.DEAD)
NONE = "none"

HARMLESS_XIDS = (13, 31, 43, 45, 68, 109)
"""An application's own fault: the device plugin ignores the same."""
DRAIN_XIDS = (48, 64, 95, 119, 120, 140)
"""The GPU must be reset; what runs may end in peace: uncorrectable memory, GSP."""
DEAD_XIDS = (54, 62, 79, 110, 143)
"""The GPU is gone: power, halted firmware, fallen off the bus."""
XID_CLASSES: Mapping[int, str] = {
    **dict.fromkeys(HARMLESS_XIDS, ""),
    **dict.fromkeys(DRAIN_XIDS, names.DRAIN),
    **dict.fromkeys(DEAD_XIDS, names.DEAD),
}

# By GPU and not by pod: the exporter's `pod` label begins a new series with each pod.
_GPU = "Hostname, UUID, gpu, modelName"
PRESENCE = "max by (Hostname) (DCGM_FI_DEV_GPU_TEMP)"
HOT = (
    f"min by ({_GPU}) (min_over_time(DCGM_FI_DEV_GPU_TEMP[10m]))"
    # A series that is younger than the window has not been hot for all of it.
    " and on (Hostname, UUID)"
    " max by (Hostname, UUID) (DCGM_FI_DEV_GPU_TEMP offset 10m)"
)
_IN_NODE_NAMES = " * on (instance) group_left (nodename) node_uname_info"
ALERTS = 'ALERTS{alertstate="firing",gpu_health=~"training-unfit|drain|dead"}'


_OF_GPUS = (
    HealthRule(
        "ThermalViolation",
        f"sum by ({_GPU}) (increase(DCGM_FI_DEV_THERMAL_VIOLATION[10m]))",
        unit=" ns throttled in 10 min",
    ),
    HealthRule(
        "ThermalSlowdown",
        f"max by ({_GPU}) (min_over_time("
        'DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event=~"hw_thermal|hw_slowdown"}[5m]))',
        unit=" clock events",
    ),
    HealthRule(
        "Xid",
        "sum by (Hostname, UUID, gpu, xid) (DCGM_EXP_XID_ERRORS_COUNT)",
        xid_classes=XID_CLASSES,
    ),
    HealthRule(
        # The gauge keeps the last XID for ever: only a change of it is news.
        "LastXid",
        f"max by ({_GPU}) (DCGM_FI_DEV_XID_ERRORS)"
        " and on (Hostname, UUID)"
        " (max by (Hostname, UUID) (changes(DCGM_FI_DEV_XID_ERRORS[15m])) > 0)",
        xid_classes=XID_CLASSES,
    ),
    HealthRule(
        "RowRemapFailure",
        f"max by ({_GPU}) (DCGM_FI_DEV_ROW_REMAP_FAILURE)",
        verdict=names.DRAIN,
        unit=" rows",
    ),
)
_OF_LINKS = (
    HealthRule(
        "NvlinkRecovery",
        f"sum by ({_GPU}) (increase(DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL[30m]))",
        unit=" NVLink recoveries in 30 min",
    ),
    HealthRule(
        "InfinibandLinkDown",
        "sum by (nodename, device) "
        f"(increase(node_infiniband_link_downed_total[1h]){_IN_NODE_NAMES})",
        unit=" links down in 1 h",
    ),
    HealthRule(
        "InfinibandSymbolErrors",
        "sum by (nodename, device) "
        f"(increase(node_infiniband_symbol_error_total[1h]){_IN_NODE_NAMES})",
        above=120.0,
        unit=" symbol errors in 1 h",
    ),
    HealthRule(
        "InfinibandIntegrity",
        # Each half filtered: `or` takes the left one of equal labels, however small.
        "sum by (nodename, device) "
        f"(increase(node_infiniband_local_link_integrity_errors_total[1h]){_IN_NODE_NAMES}) > 0"
        " or sum by (nodename, device) "
        "(increase(node_infiniband_excessive_buffer_overrun_errors_total[1h])"
        f"{_IN_NODE_NAMES}) > 0",
        unit=" link errors in 1 h",
    ),
)


def default_rules(
    celsius: float = HOT_CELSIUS, by_model: Mapping[str, float] | None = None
) -> tuple[HealthRule, ...]:
    """What is looked for unless rules are given."""
    hot = HealthRule("HotGpu", HOT, above=celsius, above_by_model=by_model or {}, unit=" °C")
    alerts = HealthRule("Alerts", ALERTS, verdict_label="gpu_health")
    return (hot, *_OF_GPUS, *_OF_LINKS, alerts)


@dataclass(frozen=True, slots=True)
class GpuHealthSettings:
    """``presence`` has a sample for every node that is measured at all."""

    enabled: bool = False
    dry_run: bool = False
    every: float = 30.0
    policy: HealthPolicy = field(default_factory=HealthPolicy)
    presence: str = PRESENCE
    rules: tuple[HealthRule, ...] = field(default_factory=default_rules)


def parse_gpu_health(block: Fields) -> GpuHealthSettings:
    """When a node becomes unfit, and how many may be at once."""
    usual = HealthPolicy()
    hot = block.child("hot")
    celsius = hot.number("celsius", HOT_CELSIUS, 1, 150)
    models = hot.child("byModel")
    by_model = {model: models.number(model, celsius, 1, 150) for model in models.raw()}
    hot.done()
    settings = GpuHealthSettings(
        enabled=block.boolean("enabled", False),
        dry_run=block.boolean("dryRun", False),
        every=block.number("everySeconds", 30.0, 0.1),
        policy=HealthPolicy(
            max_nodes_percent=block.number("maxNodesPercent", usual.max_nodes_percent, 0, 100),
            release_after_seconds=block.number(
                "releaseAfterSeconds", usual.release_after_seconds, 0
            ),
        ),
        presence=block.text("presenceQuery", PRESENCE),
        rules=_rules(block, default_rules(celsius, by_model)),
    )
    block.done()
    return settings


def _rules(block: Fields, usual: tuple[HealthRule, ...]) -> tuple[HealthRule, ...]:
    """The default rules less ``disabledRules``, and the given ones beside or instead of them."""
    known = [rule.name for rule in usual]
    off = block.texts("disabledRules", choices=known)
    given = tuple(_rule(entry) for entry in block.children("rules"))
    named = {rule.name for rule in given}
    return tuple(one for one in usual if one.name not in {*off, *named}) + given


def _rule(entry: Fields) -> HealthRule:
    limits = entry.child("aboveByModel")
    rule = HealthRule(
        name=entry.text("name"),
        query=entry.text("query"),
        verdict=entry.text("verdict", names.TRAINING_UNFIT, choices=VERDICTS),
        above=entry.number("above", 0.0),
        above_by_model={model: limits.number(model, 0.0) for model in limits.raw()},
        xid_classes=_xid_classes(entry),
        verdict_label=entry.text("verdictLabel", ""),
        unit=entry.text("unit", ""),
    )
    entry.done()
    return rule


def _xid_classes(entry: Fields) -> Mapping[int, str] | None:
    """Verdict by XID: the given ones over the usual classes; ``none`` is harmless."""
    if not entry.has("xidClasses"):
        entry.take("xidClasses")
        return None
    classes = entry.child("xidClasses")
    found: dict[int, str] = dict(XID_CLASSES)
    for number in classes.raw():
        verdict = classes.text(number, NONE, choices=(*VERDICTS, NONE))
        if re.fullmatch("[0-9]{1,9}", number):
            found[int(number)] = "" if verdict == NONE else verdict
        else:
            classes.refuse(number, "not an XID, allowed: a number such as 79")
    return found
