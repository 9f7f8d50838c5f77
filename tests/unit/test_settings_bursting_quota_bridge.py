"""The block `quotaBridge` of kind `Bursting`."""

from typing import Any

from vk_provider.bursting.quota import QuotaRules
from vk_provider.faults import FieldProblem
from vk_provider.fields import Fields
from vk_provider.settings_bursting_quota_bridge import QuotaBridgeSettings, parse_quota_bridge


def parsed(block: dict[str, Any]) -> tuple[QuotaBridgeSettings, list[str]]:
    """The settings, and what is wrong."""
    problems: list[FieldProblem] = []
    settings = parse_quota_bridge(Fields(block, "spec.quotaBridge", problems))
    return settings, [str(problem) for problem in problems]


def test_nothing_is_said_and_nothing_is_written() -> None:
    """Off, and a rehearsal when it is switched on."""
    settings, problems = parsed({})

    assert (settings, problems) == (QuotaBridgeSettings(), [])
    assert (settings.enabled, settings.dry_run) == (False, True)


def test_every_key_is_taken() -> None:
    """In seconds and GPUs."""
    block = {
        "enabled": True,
        "dryRun": False,
        "everySeconds": 5,
        "clusterQueues": ["train"],
        "perPod": 8,
        "usableCapacityPercent": 95,
        "reserve": 4,
        "shares": {"train": 2, "test": 1},
        "growStep": 16,
        "shrinkStep": 4,
        "holdDownSeconds": 60,
        "shrinkEverySeconds": 30,
        "belowReserved": True,
    }
    rules = QuotaRules(
        queues=frozenset({"train"}),
        per_pod=8,
        percent=95.0,
        reserve=4,
        shares={"train": 2.0, "test": 1.0},
        grow_step=16,
        shrink_step=4,
        hold_down_seconds=60.0,
        shrink_every_seconds=30.0,
        below_reserved=True,
    )

    assert parsed(block) == (QuotaBridgeSettings(True, False, 5.0, rules), [])


def test_a_wrong_value_names_what_is_allowed() -> None:
    """With its path."""
    _, problems = parsed({"usableCapacityPercent": 300, "shares": {"train": -1}, "step": 1})

    assert problems == [
        "spec.quotaBridge.usableCapacityPercent: found 300, allowed: a number from 1 to 100",
        "spec.quotaBridge.shares.train: found -1, allowed: a number of at least 0",
        'spec.quotaBridge.step: unknown key; did you mean "growStep"?',
    ]
