"""What goes along, what is noted, what is refused."""

from __future__ import annotations

import pytest
from vk_provider_kubernetes.rules import HOST_ACCESS
from vk_provider_kubernetes.walk import Findings, sent


def test_known_fields_go_along_as_they_are() -> None:
    """Deep inside, too."""
    probe = {"httpGet": {"port": "web", "httpHeaders": [{"name": "A", "value": "b"}]}}
    container = {"name": "main", "livenessProbe": probe, "tty": True}
    findings = Findings()

    found = sent(container, "Container", "spec.containers[0]", findings)

    assert found == container
    assert findings == Findings()


def test_an_unknown_field_is_refused_by_its_path() -> None:
    """Wherever it stands."""
    container = {"ports": [{"containerPort": 80}, {"containerPort": 81, "quantum": True}]}
    findings = Findings()

    sent(container, "Container", "spec.containers[0]", findings)

    assert [each.path for each in findings.problems] == ["spec.containers[0].ports[1].quantum"]


@pytest.mark.parametrize("nothing", [None, False, "", 0, [], {}])
def test_a_field_that_says_nothing_is_never_refused(nothing: object) -> None:
    """Clients write defaults out."""
    findings = Findings()

    sent({"hostNetwork": nothing, "quantum": nothing}, "PodSpec", "spec", findings)

    assert findings.problems == []


def test_a_rejected_field_says_why() -> None:
    """And what would allow it."""
    findings = Findings()

    found = sent({"hostPID": True}, "PodSpec", "spec", findings)

    assert found == {}
    (problem,) = findings.problems
    assert (problem.path, "hostAccess" in problem.message) == ("spec.hostPID", True)


def test_a_switch_sends_what_it_allows() -> None:
    """Without a word."""
    findings = Findings(frozenset({HOST_ACCESS}))

    assert sent({"hostPID": True}, "PodSpec", "spec", findings) == {"hostPID": True}
    assert findings.problems == []


@pytest.mark.parametrize(("value", "told"), [("default-scheduler", 0), ("volcano", 1)])
def test_an_ignored_field_is_noted_unless_it_is_the_usual(value: str, told: int) -> None:
    """What admission adds to every pod is not worth a note."""
    findings = Findings()

    assert sent({"schedulerName": value}, "PodSpec", "spec", findings) == {}
    assert len(findings.notes) == told


def test_a_rewritten_field_is_left_to_its_own_rule() -> None:
    """Silently."""
    findings = Findings()

    assert sent({"nodeName": "node-1"}, "PodSpec", "spec", findings) == {}
    assert findings == Findings()
