"""Kind Bursting: defaults, every block in its place, and what must fit together."""

from typing import Any

from vk_provider.faults import FieldProblem
from vk_provider.settings import LeaderElectionSettings
from vk_provider.settings_bursting import BurstingSettings, parse_bursting_document


def parse(spec: dict[str, Any] | None = None, **top: Any) -> tuple[BurstingSettings, list[str]]:
    """The settings of a spec and what was wrong with it."""
    problems: list[FieldProblem] = []
    document = {"apiVersion": "vk-provider.dev/v1alpha1", "kind": "Bursting", "spec": spec} | top
    found = parse_bursting_document(document, problems, "f.yaml")
    return found, [str(problem) for problem in problems]


def test_an_empty_document_is_the_defaults() -> None:
    """The parser and the dataclasses agree on every default."""
    found, problems = parse()

    assert problems == []
    assert found == BurstingSettings(source="f.yaml")
    assert found.leader_election == LeaderElectionSettings("vk-provider-bursting")


def test_every_block_is_read() -> None:
    """Each from its key."""
    found, problems = parse(
        {
            "resource": "amd.com/gpu",
            "gate": {"openAfterSeconds": 1},
            "homecoming": {"maxInFlight": 4},
            "prometheus": {"url": "http://p:9090"},
            "leaderElection": {"name": "mine"},
        },
        metadata={"name": "eu"},
    )

    assert problems == []
    assert (found.name, found.selection.resource) == ("eu", "amd.com/gpu")
    assert found.gate.limits.open_after == 1
    assert found.homecoming.max_in_flight == 4
    assert found.prometheus is not None
    assert found.leader_election.name == "mine"


def test_an_unknown_block_is_refused() -> None:
    """With the nearest that there is."""
    _, problems = parse({"gat": {}})

    assert problems == ['spec.gat: unknown key; did you mean "gate"?']


def test_gpu_health_needs_to_know_whom_to_ask() -> None:
    """It has no other source than Prometheus."""
    _, alone = parse({"gpuHealth": {"enabled": True}})
    _, together = parse({"gpuHealth": {"enabled": True}, "prometheus": {"url": "http://p:9090"}})

    assert alone == ["spec.gpuHealth: needs to know where Prometheus answers: give prometheus.url"]
    assert together == []


def test_prometheus_is_asked_before_its_last_answer_is_stale() -> None:
    """Or nobody would ever come home."""
    prometheus = {"url": "http://p:9090", "everySeconds": 61}
    _, problems = parse({"prometheus": prometheus})

    assert problems == [
        "spec.prometheus.everySeconds: found 61, allowed: at most half of "
        "gate.signals.staleAfterSeconds (120)"
    ]
