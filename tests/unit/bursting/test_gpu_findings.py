"""What samples say about nodes."""

import math
from typing import Any

import pytest

from vk_provider.bursting.gpu_findings import (
    Finding,
    HealthRule,
    Sample,
    addresses_of,
    findings,
    node_of,
    observed,
    unreadable,
)
from vk_provider.bursting.picture import HomeNode

KNOWN = {"home-0": "home-0", "10.0.0.7": "home-1"}
HOT = HealthRule("HotGpu", "q", above=78, above_by_model={"NVIDIA B": 80, "NVIDIA B200": 85})
XID = HealthRule("Xid", "q", xid_classes={79: "dead", 48: "drain", 13: ""})


def sample(value: float, **labels: str) -> Sample:
    """A sample about home-0."""
    return Sample({"Hostname": "home-0", **labels}, value)


def found(rule: HealthRule, *samples: Sample) -> list[Finding]:
    """What a rule finds."""
    return list(findings(rule, samples, KNOWN))


def test_more_than_the_limit_is_a_finding() -> None:
    """At the limit is none."""
    hot = found(HealthRule("HotGpu", "q", above=78, unit=" °C"), sample(78), sample(81, gpu="3"))

    assert hot == [Finding("home-0", "training-unfit", "HotGpu", "GPU 3 81 °C, limit 78 °C")]
    assert str(hot[0]) == "HotGpu: GPU 3 81 °C, limit 78 °C"
    assert str(Finding("n", "dead", "Rule", "")) == "Rule"


@pytest.mark.parametrize(
    ("model", "degrees", "is_hot"),
    [
        ("NVIDIA H100", 79, True),
        ("NVIDIA B100", 79, False),
        ("NVIDIA B100", 81, True),
        ("NVIDIA B200", 84, False),
        ("NVIDIA B200 180GB", 86, True),
        ("", 79, True),
    ],
)
def test_each_model_may_have_its_own_limit(model: str, degrees: float, is_hot: bool) -> None:
    """The longest beginning decides."""
    assert bool(found(HOT, sample(degrees, modelName=model))) is is_hot


def test_an_xid_is_sorted_into_its_class() -> None:
    """By its label; without one the sample is the number. Unknown ones are the rule's verdict."""
    labelled = [sample(1, xid=number, UUID="GPU-1") for number in ("79", "48", "13", "94")]

    assert [one.verdict for one in found(XID, *labelled)] == ["dead", "drain", "training-unfit"]
    assert found(XID, sample(79)) == [Finding("home-0", "dead", "Xid", "XID 79")]
    assert found(XID, sample(0, xid="79")) == []
    assert found(XID, sample(79, xid="²")) == [Finding("home-0", "dead", "Xid", "XID 79")]


def test_an_alert_carries_its_verdict() -> None:
    """Under its own name; a verdict that is none says nothing."""
    rule = HealthRule("Alerts", "q", verdict_label="gpu_health")
    good = sample(1, gpu_health="drain", alertname="GpuLost", device="mlx5_0")

    assert found(rule, good) == [Finding("home-0", "drain", "GpuLost", "mlx5_0")]
    assert found(rule, sample(1, gpu_health="sad"), sample(1)) == []


def test_strangers_say_nothing() -> None:
    """A node that is none of ours."""
    strangers = Sample({"Hostname": "else"}, math.inf), Sample({}, 99)

    assert found(HOT, *strangers) == []
    assert unreadable(HOT, strangers, KNOWN) == frozenset()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_is_neither_a_finding_nor_health(value: float) -> None:
    """A division by nothing: the node counts as one that is not measured."""
    alerts = HealthRule("Alerts", "q", verdict_label="gpu_health")
    strange = sample(value, xid="79", gpu_health="dead")

    for rule in (HOT, XID, alerts):
        assert found(rule, strange) == []
        assert unreadable(rule, [sample(1), strange], KNOWN) == {"home-0"}
    assert observed([strange], KNOWN) == frozenset()


@pytest.mark.parametrize(
    "strange", [sample(1e300), sample(79.5), sample(1, xid="7" * 5000), sample(79.5, xid="")]
)
def test_what_is_no_xid_is_unknown(strange: Sample) -> None:
    """A number that no driver reports."""
    assert found(XID, strange) == []
    assert unreadable(XID, [strange], KNOWN) == {"home-0"}
    assert unreadable(XID, [sample(-0.5), sample(2.5, xid="79")], KNOWN) == frozenset()


@pytest.mark.parametrize(
    "labels",
    [
        {"node": "home-0", "instance": "10.0.0.7:9400"},
        {"instance": "home-0:9400"},
        {"node": "stranger", "nodename": "home-0"},
    ],
)
def test_a_node_is_found_by_the_label_believed_most(labels: dict[str, str]) -> None:
    """With or without a port."""
    assert node_of(labels, KNOWN) == "home-0"
    assert node_of({"instance": "10.0.0.7:9100"}, KNOWN) == "home-1"


def test_nodes_are_known_by_name_and_hostname() -> None:
    """A name wins over another node's hostname."""
    nodes: list[Any] = [
        HomeNode("a", labels={"kubernetes.io/hostname": "b"}),
        HomeNode("b", labels={"kubernetes.io/hostname": "ip-10-0-0-1"}),
        HomeNode("c"),
    ]

    assert addresses_of(nodes) == {"a": "a", "b": "b", "ip-10-0-0-1": "b", "c": "c"}


def test_a_measured_node_is_one_that_has_samples() -> None:
    """Whatever they say."""
    assert observed([sample(1), Sample({"Hostname": "else"}, 1)], KNOWN) == {"home-0"}
