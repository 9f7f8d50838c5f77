"""One VirtualNode document: every field has its default and its bounds."""

from typing import Any

import pytest

from vk_provider.faults import FieldProblem
from vk_provider.placement.ranking import Policy
from vk_provider.settings import PROVIDER_TAINT, NodeSettings, Reach
from vk_provider.settings_parse import parse_node
from vk_provider.taints import Taint


def document(**spec: Any) -> dict[str, Any]:
    """The smallest valid document; None takes a field away."""
    full: dict[str, Any] = {
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": 10},
        "backends": [{"name": "a", "provider": "fake"}],
        **spec,
    }
    return {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "VirtualNode",
        "metadata": {"name": "burst"},
        "spec": {key: value for key, value in full.items() if value is not None},
    }


def parsed(value: dict[str, Any]) -> tuple[NodeSettings, list[str]]:
    """Settings and problems as text."""
    problems: list[FieldProblem] = []
    return parse_node(value, problems, "f.yaml"), [str(problem) for problem in problems]


def test_the_smallest_document_has_every_default() -> None:
    """What is not said is what the design says."""
    node, problems = parsed(document())

    assert problems == []
    assert (node.name, node.source) == ("burst", "f.yaml")
    assert node.capacity == {"cpu": "8", "memory": "32Gi", "pods": "10"}
    assert node.taints == (PROVIDER_TAINT,)
    assert node.backends[0].config_path == "spec.backends[0].config"
    assert node.leader_election.name == "vk-provider-burst"
    assert node.leader_election.enabled
    assert (node.tick_seconds, node.reach, node.admission_enabled) == (10, Reach.NONE, True)
    assert (node.pending_deadline_seconds, node.confirm_deadline_seconds) == (1800, 300)
    assert (node.fail_after_backend_lost_seconds, node.start_deadline_seconds) == (None, None)
    assert (node.namespaces, node.cluster_id) == ((), None)


def test_every_field_is_read() -> None:
    """A document that says everything."""
    node, problems = parsed(
        document(
            labels={"topology.kubernetes.io/zone": "outside", "type": "virtual-kubelet"},
            taints=[
                {"key": "a/b", "value": "c", "effect": "NoExecute"},
                {"key": "d", "effect": "NoSchedule"},
            ],
            backends=[
                {"name": "a", "provider": "fake", "config": {"k": 1}},
                {"name": "b", "provider": "runpod"},
            ],
            placement={"policy": "priority", "budget": {"usdPerHour": 2.5}},
            clusterId="home",
            tickSeconds=0.5,
            reach="direct",
            admission={"enabled": False},
            namespaces=["one", "two"],
            pendingDeadlineSeconds=0,
            confirmDeadlineSeconds=5,
            failAfterBackendLostSeconds=60,
            startDeadlineSeconds=900,
            bursting={"gate": {"enabled": False}},
        )
    )

    assert problems == []
    assert node.labels["topology.kubernetes.io/zone"] == "outside"
    assert node.taints == (Taint("a/b", "c", "NoExecute"), Taint("d", "", "NoSchedule"))
    assert [(each.name, each.provider) for each in node.backends] == [
        ("a", "fake"),
        ("b", "runpod"),
    ]
    assert node.backends[0].config == {"k": 1}
    assert node.placement.policy is Policy.PRIORITY
    assert node.placement.budget.node.usd_per_hour == 2.5
    assert (node.cluster_id, node.tick_seconds, node.reach) == ("home", 0.5, Reach.DIRECT)
    assert (node.admission_enabled, node.namespaces) == (False, ("one", "two"))
    assert (node.fail_after_backend_lost_seconds, node.start_deadline_seconds) == (60, 900)


def test_no_taints_at_all_is_a_choice() -> None:
    """An empty list is not an absent one."""
    assert parsed(document(taints=[]))[0].taints == ()


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"capacity": {"cpu": "8", "memory": "1Gi"}}, "capacity.pods: missing, must be given"),
        ({"capacity": None}, "capacity.cpu: missing, must be given"),
        (
            {"capacity": {"cpu": "8x", "memory": "1Gi", "pods": "1"}},
            'capacity.cpu: found "8x", allowed: a Kubernetes quantity such as',
        ),
        (
            {"capacity": {"cpu": "1", "memory": "0", "pods": "1"}},
            'capacity.memory: found "0", allowed: more than 0',
        ),
        (
            {"capacity": {"cpu": "1", "memory": "1", "pods": "1.5"}},
            'capacity.pods: found "1.5", allowed: a whole number',
        ),
        (
            {"capacity": {"cpu": "1", "memory": "1", "pods": "1", "nvidia.com/gpu": "-1"}},
            'capacity[nvidia.com/gpu]: found "-1", allowed: more than 0',
        ),
        (
            {"capacity": {"cpu": "1", "memory": "1", "pods": "1", "gpu": "1"}},
            "capacity.gpu: not a resource that a pod can ask for; did you mean "
            '"nvidia.com/gpu" or "amd.com/gpu"?',
        ),
        (
            {"capacity": {"cpu": "1", "memory": "1", "pods": "1", "a/b/c": "1"}},
            "capacity[a/b/c]: not a resource that a pod can ask for; valid: DOMAIN/NAME",
        ),
        (
            {"capacity": {"cpu": "1", "memory": "1", "pods": "1", "nvidia.com/gpus": "1"}},
            'capacity[nvidia.com/gpus]: "nvidia.com/gpus" is not among the GPU resources known',
        ),
        ({"labels": {"a b": "c"}}, "labels[a b]: not a label's key"),
        ({"labels": {"a": "b c"}}, 'labels.a: found "b c", allowed: at most 63 letters'),
        ({"labels": {"type": "x"}}, 'labels.type: found "x", allowed: "virtual-kubelet"'),
        ({"labels": {"kubernetes.io/hostname": "x"}}, 'labels[kubernetes.io/hostname]: found "x"'),
        ({"taints": [{"key": "a"}]}, "taints[0].effect: missing, must be given; allowed: NoSch"),
        (
            {"taints": [{"key": "vk-provider.dev/gate", "effect": "NoSchedule"}]},
            'taints[0].key: "vk-provider.dev/gate" is set and removed by the node itself',
        ),
        ({"backends": []}, "backends: missing, must be given; allowed: a list of at least one"),
        ({"backends": None}, "backends: missing, must be given; allowed: a list of at least one"),
        ({"backends": "fake"}, 'backends: found "fake", allowed: a list of mappings'),
        ({"backends": [{"name": "a"}]}, "backends[0].provider: missing, must be given"),
        (
            {"backends": [{"name": "A_b", "provider": "fake"}]},
            'backends[0].name: found "A_b", allowed: at most 63 lower-case letters',
        ),
        (
            {"backends": [{"name": "a", "provider": "f"}, {"name": "a", "provider": "f"}]},
            'backends[1].name: "a" is the name of an earlier backend too',
        ),
        ({"namespaces": ["Ups"]}, 'namespaces[0]: found "Ups", allowed: at most 63'),
        ({"clusterId": "a b"}, 'clusterId: found "a b", allowed: a label\'s value'),
        ({"tickSeconds": 0}, "tickSeconds: found 0, allowed: a number from 0.05 to 3600"),
        ({"tikSeconds": 1}, 'tikSeconds: unknown key; did you mean "tickSeconds"?'),
    ],
)
def test_a_wrong_field_is_one_problem_with_its_path(spec: dict[str, Any], problem: str) -> None:
    """The first words of what a person reads."""
    _, problems = parsed(document(**spec))

    assert problems[0].startswith(f"spec.{problem}")


@pytest.mark.parametrize("name", ["", "Burst", "a" * 64, "a_b", "-a"])
def test_a_node_has_a_kubernetes_name(name: str) -> None:
    """It is a DNS name and a label's value at once."""
    value = {**document(), "metadata": {"name": name}}

    _, problems = parsed(value)

    assert problems[0].startswith("metadata.name: found")


def test_all_problems_are_told_at_once() -> None:
    """Three mistakes, three sentences."""
    _, problems = parsed(document(tickSeconds=-1, reach="x", backends=None))

    assert len(problems) == 3
