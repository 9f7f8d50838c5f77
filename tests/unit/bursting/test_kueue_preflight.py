"""Each trap of Kueue beside inference is found and told with what to do."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from vk_provider.bursting.checkup import Advice, Level
from vk_provider.bursting.kueue_preflight import (
    CheckState,
    KueueFacts,
    PriorityClass,
    TrainingSet,
    examine,
)
from vk_provider.bursting.picture import HomeNode, Picture, PodView, Selection, VirtualNode
from vk_provider.bursting.quota_objects import FlavorView, QueueView, QuotaLine
from vk_provider.taints import Taint, Toleration

NOW = datetime(2026, 5, 1, tzinfo=UTC)
GPU = "nvidia.com/gpu"
TOLERANT = (Toleration("virtual-kubelet.io/provider", "Exists"),)
PROVIDER = Taint("virtual-kubelet.io/provider", "vk-provider")
VIRTUAL = VirtualNode(
    "burst", gpus=20, labels={"type": "virtual-kubelet", "pool": "cloud"}, taints=(PROVIDER,)
)
INFERENCE = PodView(
    "u", "default", "chat-1", priority=1000, labels={"vk-provider.dev/burst": "true"}
)
MANAGER = {"waitForPodsReady": {"timeout": "5m"}, "integrations": {"frameworks": ["batch/job"]}}


def queue(nominal: int = 16, flavor: str = "home", **how: Any) -> QueueView:
    """The training queue."""
    line = QuotaLine("train", flavor, how.pop("resource", GPU), 0, 0, 0, str(nominal), nominal)
    return QueueView("train", lines=(line,), **how)


HOME = FlavorView("home", {"pool": "home"})
GOOD = KueueFacts(
    version="v1beta2",
    flavors=(HOME,),
    queues=(queue(),),
    training=(TrainingSet("default/job", "training", "default-scheduler"),),
    classes={"training": PriorityClass("training", 100_000)},
    picture=Picture(virtual=(VIRTUAL,), pods=(INFERENCE,)),
    nodes=tuple(HomeNode(name, gpus=8, labels={"pool": "home"}) for name in ("a", "b")),
    inference_schedulers=frozenset({"default-scheduler"}),
    manager=MANAGER,
)


def advice(facts: KueueFacts, **selection: Any) -> list[Advice]:
    """What is wrong or remarkable."""
    found = examine(facts, Selection(**selection), NOW)
    return [one for one in found if one.level is not Level.OK]


def only(facts: KueueFacts, **selection: Any) -> Advice:
    """The one thing that is."""
    (found,) = advice(facts, **selection)
    return found


def test_a_good_cluster_is_told_what_was_looked_at() -> None:
    """Nothing but good news."""
    found = examine(GOOD, Selection(), NOW)

    assert {one.level for one in found} == {Level.OK}
    assert [one.subject for one in found] == [
        "Kueue",
        "Topology-Aware Scheduling",
        "ResourceFlavor home",
        "Quotas",
        "PriorityClass training",
    ]


def test_without_kueue_there_is_nothing_to_look_at() -> None:
    """One error, with what to do."""
    assert only(KueueFacts("")).what == "its API group kueue.x-k8s.io is not served here"


def test_a_topology_on_a_training_flavor_is_explained() -> None:
    """It is the trap in which nothing errs and nothing happens."""
    found = only(replace(GOOD, flavors=(replace(HOME, topology="host"),)))

    assert (found.level, found.subject) == (Level.ERROR, "ResourceFlavor home")
    assert 'topologyName "host"' in found.what
    assert "never gets to preempt" in found.what
    assert "take topologyName off" in found.remedy


def test_a_topology_that_room_is_made_for_is_only_noted() -> None:
    """The evacuation moves inference before Kueue looks."""
    flavors = (replace(HOME, topology="host"),)
    found = only(replace(GOOD, flavors=flavors, makes_room=True))

    assert found.level is Level.NOTE
    assert found.what.endswith("admissionCheck.topology makes room for it")


def test_a_topology_that_nobody_has_is_found() -> None:
    """Asked for by a job."""
    asking = TrainingSet("default/job", "training", wants_topology=True)

    assert "topology that no flavor" in only(replace(GOOD, training=(asking,))).what


@pytest.mark.parametrize(
    ("flavor", "level", "words"),
    [
        (FlavorView("home"), Level.ERROR, "has no nodeLabels"),
        (FlavorView("home", {"pool": "cloud"}), Level.ERROR, "selects the virtual node burst"),
        (FlavorView("home", {"pool": "none"}), Level.ERROR, "selects no node"),
        (
            FlavorView("home", {"pool": "home"}, TOLERANT),
            Level.WARNING,
            "may go outside never needs to preempt",
        ),
    ],
)
def test_a_training_flavor_stands_for_home_nodes(
    flavor: FlavorView, level: Level, words: str
) -> None:
    """And for no other."""
    found = [one for one in advice(replace(GOOD, flavors=(flavor,))) if "Flavor" in one.subject]

    assert (found[0].level, found[0].subject) == (level, "ResourceFlavor home")
    assert words in found[0].what


def test_a_flavor_outside_is_fine_while_its_gate_is_open() -> None:
    """And a promise that nobody keeps while it is shut."""
    outside = FlavorView("burst", {"pool": "cloud"}, TOLERANT)
    facts = replace(GOOD, flavors=(outside,), queues=(queue(20, "burst"),))
    gate = Taint("vk-provider.dev/gate", "hold")
    shut = replace(VIRTUAL, taints=(PROVIDER, gate))

    assert advice(facts) == []
    found = advice(replace(facts, picture=Picture(virtual=(shut,))))
    assert [one.subject for one in found] == ["ResourceFlavor burst", "ClusterQueue train"]
    assert "shut now (burst)" in found[0].what


def test_quotas_are_compared_with_the_nodes() -> None:
    """Too large displaces inference for nothing; too small leaves GPUs idle."""
    large = only(replace(GOOD, queues=(queue(24),)))
    small = only(replace(GOOD, queues=(queue(8),)))

    assert (large.level, small.level) == (Level.ERROR, Level.WARNING)
    assert "is 24, the nodes can give 16: admitted jobs would stay Pending" in large.what
    assert "is 8, the nodes can give 16: GPUs would stay idle" in small.what


def test_a_quota_that_can_not_be_compared_is_noted() -> None:
    """With the reason."""
    found = only(replace(GOOD, queues=(queue(stop_policy="Hold"),)))

    assert found.level is Level.NOTE
    assert "its stopPolicy is Hold" in found.what


@pytest.mark.parametrize(
    ("name", "words"),
    [("gone", "does not exist"), ("asleep", "is not Active")],
)
def test_a_check_that_nobody_answers_stops_the_queue(name: str, words: str) -> None:
    """Whether it is absent or its controller is."""
    checks = (CheckState("asleep", "x", False), CheckState("fine", "x"))
    found = only(replace(GOOD, queues=(queue(checks=(name, "fine")),), checks=checks))

    assert found.subject == f"AdmissionCheck {name}"
    assert found.what == f"{words}: ClusterQueue train admits nothing without it"


def test_a_queue_that_does_nothing_is_found() -> None:
    """Inactive, without GPUs, or not there."""
    inactive = only(replace(GOOD, queues=(queue(is_active=False, inactive_why="no flavor"),)))
    assert inactive.what.endswith("ever admitted: no flavor")
    blind = advice(replace(GOOD, queues=(queue(resource="cpu"),)))
    assert f"covers no {GPU}" in blind[0].what
    absent = advice(GOOD, queues=frozenset({"other"}))
    assert absent[0].subject == "ClusterQueue other"


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (None, "does not exist"),
        (PriorityClass("training", 100_000, preempts=False), "preemptionPolicy: Never"),
        (PriorityClass("training", 1000), "inference pod default/chat-1 has 1000"),
    ],
)
def test_the_training_class_preempts_inference(known: PriorityClass | None, words: str) -> None:
    """By value and policy; an ended pod does not count."""
    classes = {} if known is None else {"training": known}

    found = only(replace(GOOD, classes=classes))
    assert (found.level, found.subject) == (Level.ERROR, "PriorityClass training")
    assert words in found.what
    over = Picture(virtual=(VIRTUAL,), pods=(replace(INFERENCE, phase="Failed"),))
    assert advice(replace(GOOD, picture=over)) == []


def test_training_without_a_priority_is_found() -> None:
    """A WorkloadPriorityClass alone leaves its pods at zero; many are not all named."""
    bare = tuple(TrainingSet(f"default/job-{number}") for number in range(7))
    found = only(replace(GOOD, training=bare))

    assert found.subject == (
        "Workload default/job-0, default/job-1, default/job-2, default/job-3, default/job-4 "
        "and 2 more"
    )
    assert found.remedy == "set spec.template.spec.priorityClassName: training"
    other = only(replace(GOOD, training=(TrainingSet("default/job", "batch"),)))
    assert "not listed in training.priorityClasses" in other.what


def test_two_schedulers_do_not_preempt_for_each_other() -> None:
    """A job of another one is found; nothing running is nothing wrong."""
    volcano = TrainingSet("default/job", "training", "volcano")

    found = only(replace(GOOD, training=(volcano,)))
    assert found.what == (
        "training is placed by volcano, inference by default-scheduler: "
        "one can't preempt for the other"
    )
    assert advice(replace(GOOD, training=(), inference_schedulers=frozenset())) == []


def test_kueues_own_configuration_is_looked_at() -> None:
    """If it can be."""
    unread = only(replace(GOOD, manager=None))
    assert (unread.level, unread.subject) == (Level.NOTE, "Kueue's configuration")
    frameworks = {"frameworks": ["batch/job", "deployment", "pod"]}
    manager = {"integrations": frameworks, "manageJobsWithoutQueueName": True}
    found = advice(replace(GOOD, manager=manager))
    assert [one.subject for one in found] == [
        "waitForPodsReady",
        "integrations.frameworks",
        "manageJobsWithoutQueueName",
    ]
    assert "has deployment, pod" in found[1].what
