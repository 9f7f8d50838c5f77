"""The block `gpuHealth` of kind `Bursting`, and the rules that hold unless others are given."""

from typing import Any

from vk_provider.bursting.gpu_findings import HealthRule
from vk_provider.bursting.gpu_health import HealthPolicy
from vk_provider.faults import FieldProblem
from vk_provider.fields import Fields
from vk_provider.settings_bursting_gpu_health import (
    XID_CLASSES,
    GpuHealthSettings,
    parse_gpu_health,
)


def parsed(block: dict[str, Any]) -> tuple[GpuHealthSettings, list[str]]:
    """The settings, and what is wrong."""
    problems: list[FieldProblem] = []
    settings = parse_gpu_health(Fields(block, "spec.gpuHealth", problems))
    return settings, [str(problem) for problem in problems]


def rule(settings: GpuHealthSettings, name: str) -> HealthRule:
    """The rule of this name; there is one."""
    (found,) = [one for one in settings.rules if one.name == name]
    return found


def test_nothing_is_said_and_nothing_runs() -> None:
    """With the public talk's 78 °C, should it be switched on."""
    settings, problems = parsed({})

    assert (settings, problems) == (GpuHealthSettings(), [])
    assert settings.enabled is False
    assert rule(settings, "HotGpu").above == 78


def test_the_policy_is_taken() -> None:
    """In percent and seconds."""
    block = {
        "enabled": True,
        "dryRun": True,
        "everySeconds": 5,
        "maxNodesPercent": 10,
        "releaseAfterSeconds": 60,
        "presenceQuery": "up",
    }
    settings, problems = parsed(block)

    assert problems == []
    assert (settings.enabled, settings.dry_run, settings.every) == (True, True, 5.0)
    assert (settings.policy, settings.presence) == (HealthPolicy(10.0, 60.0), "up")


def test_each_model_may_be_hot_at_another_temperature() -> None:
    """What is normal for a liquid-cooled rack is not for another."""
    hot = {"celsius": 80, "byModel": {"NVIDIA B200": 85}}
    settings, problems = parsed({"hot": hot})

    assert problems == []
    found = rule(settings, "HotGpu")
    assert (found.above, found.above_by_model) == (80.0, {"NVIDIA B200": 85.0})


def test_rules_can_be_switched_off_replaced_and_added() -> None:
    """A given rule takes the place of the one of its name."""
    own = {"name": "Fabric", "query": "up == 0", "verdict": "dead", "aboveByModel": {"A": 1}}
    xid = {"name": "Xid", "query": "x", "xidClasses": {79: "drain", 48: "none"}}
    settings, problems = parsed({"disabledRules": ["LastXid"], "rules": [own, xid]})

    assert problems == []
    assert "LastXid" not in [one.name for one in settings.rules]
    assert rule(settings, "Fabric") == HealthRule(
        "Fabric", "up == 0", "dead", above_by_model={"A": 1.0}
    )
    assert rule(settings, "Xid").xid_classes == {**XID_CLASSES, 79: "drain", 48: ""}


def test_a_wrong_value_names_what_is_allowed() -> None:
    """With its path."""
    broken = {
        "name": "A",
        "query": "q",
        "verdict": "sick",
        "xidClasses": {"fell": "dead", "²": "dead"},
    }
    _, problems = parsed({"disabledRules": ["Hot"], "rules": [broken]})

    path = "spec.gpuHealth"
    assert problems[0].startswith(f'{path}.disabledRules[0]: found "Hot", allowed: HotGpu, ')
    assert problems[1:] == [
        f'{path}.rules[0].verdict: found "sick", allowed: training-unfit, drain, dead',
        f"{path}.rules[0].xidClasses.fell: not an XID, allowed: a number such as 79",
        f"{path}.rules[0].xidClasses[²]: not an XID, allowed: a number such as 79",
    ]
