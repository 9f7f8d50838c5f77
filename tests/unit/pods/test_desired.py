"""Readings of a pod: right for the usual shapes, harmless for any other."""

from datetime import UTC, datetime
from typing import Any

import pytest

from vk_provider.pods import desired


def owned(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """A pod with a controller, labels and annotations."""
    owner = {"kind": kind, "name": name, "controller": True}
    metadata = {"namespace": "ns", "uid": "u1", "ownerReferences": [{"kind": "Other"}, owner]}
    return {"metadata": metadata | more.pop("metadata", {}), "spec": more}


def test_phases_and_deletion() -> None:
    """Terminal is a phase, terminating a timestamp; a pod without status is Pending."""
    failed = {"status": {"phase": "Failed"}}
    leaving = {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}

    assert desired.is_terminal(failed)
    assert not desired.is_terminal(leaving)
    assert desired.phase(leaving) == "Pending"
    assert desired.is_terminating(leaving)
    assert not desired.is_terminating(failed)


def test_deletion_long_before_creation_grants_the_same_grace() -> None:
    """No arithmetic on the clocks of two machines: only the granted seconds count."""
    metadata = {
        "creationTimestamp": "2024-05-03T00:00:00Z",
        "deletionTimestamp": "2024-05-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
    }

    assert desired.grace_seconds({"metadata": metadata}) == 5


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        ({"metadata": {"deletionGracePeriodSeconds": 0}}, 0),
        ({"spec": {"terminationGracePeriodSeconds": 90}}, 90),
        ({"metadata": {"deletionGracePeriodSeconds": -4}}, 0),
        ({"metadata": {"deletionGracePeriodSeconds": "soon"}}, 30),
        ({}, 30),
    ],
)
def test_grace_is_granted_or_wanted_or_the_default(pod: dict[str, Any], seconds: int) -> None:
    """The deletion's grace first; nonsense is never negative."""
    assert desired.grace_seconds(pod) == seconds


def test_owners() -> None:
    """Only the controller counts among the owners."""
    assert desired.is_daemonset(owned("DaemonSet", "logs"))
    assert not desired.is_daemonset(owned("ReplicaSet", "web"))
    assert desired.has_controller(owned("ReplicaSet", "web"))
    assert not desired.has_controller({"metadata": {"ownerReferences": [{"kind": "Job"}]}})


@pytest.mark.parametrize(
    ("pod", "key"),
    [
        (
            owned("ReplicaSet", "web-5f6", metadata={"labels": {"pod-template-hash": "5f6"}}),
            "ns/Deployment/web",
        ),
        (
            owned("ReplicaSet", "web-5f6", metadata={"labels": {"pod-template-hash": "777"}}),
            "ns/ReplicaSet/web-5f6",
        ),
        (owned("ReplicaSet", "web-5f6"), "ns/ReplicaSet/web-5f6"),
        (owned("Job", "nightly-28123456"), "ns/CronJob/nightly"),
        (owned("Job", "once-1234"), "ns/Job/once-1234"),
        (owned("StatefulSet", "db"), "ns/StatefulSet/db"),
        ({"metadata": {"uid": "u9"}}, "u9"),
    ],
)
def test_owner_key_names_the_top_owner(pod: dict[str, Any], key: str) -> None:
    """Deployments and CronJobs are told from the names that they give."""
    assert desired.owner_key(pod) == key


def test_a_job_ignores_disruptions_only_if_its_pod_says_so() -> None:
    """The policy itself is not in the pod; with OnFailure there can be none."""
    says = {"annotations": {"vk-provider.dev/job-ignores-disruption": "true"}}
    counted = {"annotations": {"batch.kubernetes.io/job-index-ignored-failure-count": "1"}}
    check = desired.is_job_that_cannot_ignore

    assert check(owned("Job", "j", restartPolicy="Never"))
    assert check(owned("Job", "j", restartPolicy="OnFailure", metadata=says))
    assert not check(owned("Job", "j", restartPolicy="Never", metadata=says))
    assert not check(owned("Job", "j", restartPolicy="Never", metadata=counted))
    assert not check(owned("ReplicaSet", "r", restartPolicy="Always"))


def test_probes_readiness_and_starts_are_read_from_where_they_stand() -> None:
    """Probes from the spec, Ready and starts from the status."""
    probing: dict[str, Any] = {"spec": {"initContainers": [{"startupProbe": {"exec": {}}}]}}
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    started: dict[str, Any] = {"status": {"initContainerStatuses": [{"state": {"running": {}}}]}}

    assert desired.has_probes(probing)
    assert not desired.has_probes(ready)
    assert desired.is_ready(ready)
    assert not desired.is_ready(started)
    assert desired.has_started(started)
    assert not desired.has_started(ready)


def test_spec_readings_have_the_api_servers_defaults() -> None:
    """Restart policy, deadline, generation, version, start time."""
    pod = {
        "metadata": {
            "generation": 3,
            "resourceVersion": "7",
            "annotations": {"kubernetes.io/config.mirror": "x"},
        },
        "spec": {"restartPolicy": "Never", "activeDeadlineSeconds": 60},
        "status": {"startTime": "2024-05-01T00:00:00Z"},
    }

    assert desired.restart_policy(pod) == "Never"
    assert desired.restart_policy({}) == "Always"
    assert desired.active_deadline_seconds(pod) == 60
    assert desired.generation(pod) == 3
    assert desired.generation({}) == 0
    assert (desired.version(pod), desired.version({})) == ("7", "")
    assert desired.start_time(pod) == datetime(2024, 5, 1, tzinfo=UTC)
    assert desired.start_time({}) is None
    assert desired.parse_time("2024-05-01T00:00:00") == datetime(2024, 5, 1, tzinfo=UTC)


def test_a_start_is_from_start_time_to_the_first_container() -> None:
    """Not of a pod that has not started, or whose containers have started anew since."""

    def pod(*started: str | None, restarts: int = 0) -> dict[str, Any]:
        states = [{} if at is None else {"running": {"startedAt": at}} for at in started]
        statuses = [{"state": state, "restartCount": restarts} for state in states]
        return {"status": {"startTime": "2024-05-01T00:00:00Z", "containerStatuses": statuses}}

    later, last = "2024-05-01T00:01:30Z", "2024-05-01T00:05:00Z"
    assert desired.start_seconds(pod(None, last, later)) == 90
    assert desired.start_seconds(pod(None)) is None
    assert desired.start_seconds(pod(later, restarts=1)) is None
    assert desired.start_seconds({}) is None


def test_an_ordinal_is_a_statefulsets_pod() -> None:
    """Its name says which."""
    pod = owned("StatefulSet", "db", metadata={"name": "db-0"})
    assert desired.is_ordinal(pod)
    assert not desired.is_ordinal(owned("ReplicaSet", "web"))
    assert desired.full_name(pod) == "ns/db-0"


ENDED = {"type": "Ready", "lastTransitionTime": "2024-05-01T00:00:00Z"}
DISRUPTED = {
    "type": "DisruptionTarget",
    "reason": "TerminationByKubelet",
    "lastTransitionTime": "2024-05-01T00:30:00Z",
}


@pytest.mark.parametrize(
    ("status", "minute"),
    [
        ({"phase": "Failed", "reason": "ContainerExited", "conditions": [ENDED]}, 0),
        ({"phase": "Failed", "conditions": [ENDED]}, 0),
        ({"phase": "Failed", "reason": "OutOfpods", "conditions": [ENDED, DISRUPTED]}, 30),
        ({"phase": "Failed", "reason": "OutOfpods", "conditions": [ENDED]}, None),
        ({"phase": "Failed", "reason": "ContainerExited"}, None),
        ({"phase": "Running", "conditions": [ENDED]}, None),
        ({"phase": "Failed", "reason": "Evicted", "conditions": [ENDED]}, None),
        (
            {
                "phase": "Failed",
                "reason": "Evicted",
                "conditions": [ENDED, {**DISRUPTED, "reason": "EvictionByEvictionAPI"}],
            },
            None,
        ),
    ],
)
def test_when_we_failed_a_pod(status: dict[str, Any], minute: int | None) -> None:
    """By the condition that came with the phase, else when it was no longer Ready; not a failure
    of others, nor the phase that a deleted pod leaves with."""
    at = datetime(2024, 5, 1, 0, minute, tzinfo=UTC) if minute is not None else None

    assert desired.failed_at({"status": status}) == at
    leaving = {"deletionTimestamp": "2024-05-01T00:00:00Z"}
    assert desired.failed_at({"metadata": leaving, "status": status}) is None
