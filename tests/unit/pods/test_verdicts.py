"""How a pod ends: by policy, by exit codes, by what the backend did, by its deadline."""

from typing import Any

import pytest

from tests.unit.pods.situations import (
    at,
    container,
    instance,
    make_pod,
    running_status,
)
from vk_provider.pods.types import (
    ContainerObservation,
    EndCause,
    InstancePhase,
    Observation,
    Running,
    Terminated,
    Verdict,
    Waiting,
)
from vk_provider.pods.verdicts import (
    by_exit_codes,
    deadline,
    end_of,
    failed,
    given_up,
    judge,
    lost,
    overdue,
)

ENDED = InstancePhase.ENDED
LIVES = Verdict("Running")


def end(code: int | None, name: str = "main") -> ContainerObservation:
    """A container that ended with this code."""
    return container(Terminated(code), name)


def outcome(
    pod: Any, seen: Observation, *, in_place: bool = False
) -> tuple[str, str | None] | None:
    """Phase and reason of the verdict."""
    verdict = judge(pod, seen, restarts_in_place=in_place)
    return None if verdict is None else (verdict.phase, verdict.reason)


def pod_of(policy: str, *names: str, init: Any = ()) -> dict[str, Any]:
    """A pod of these containers."""
    containers = [{"name": name} for name in names or ("main",)]
    return make_pod(restartPolicy=policy, containers=containers, initContainers=list(init))


@pytest.mark.parametrize(
    ("policy", "code", "expected"),
    [
        ("Always", 0, ("Failed", "ContainerExited")),
        ("Always", 1, ("Failed", "ContainerExited")),
        ("OnFailure", 0, ("Succeeded", None)),
        ("OnFailure", 3, ("Failed", "ContainerExited")),
        ("OnFailure", None, ("Failed", "ContainerExited")),
        ("Never", 0, ("Succeeded", None)),
        ("Never", 3, ("Failed", None)),
        ("Never", None, ("Failed", None)),
    ],
)
def test_the_first_end_that_the_policy_would_restart_ends_the_pod(
    policy: str, code: int | None, expected: tuple[str, str | None]
) -> None:
    """We never restart; other ends are final as they are (C108)."""
    for phase in (InstancePhase.RUNNING, ENDED):
        assert outcome(pod_of(policy), instance(phase, end(code))) == expected


def test_the_message_names_container_code_and_policy() -> None:
    """A person reads why the pod was not restarted in place."""
    known, unknown = (
        judge(pod_of("Always"), instance(ENDED, end(code)), restarts_in_place=False) or LIVES
        for code in (7, None)
    )

    assert 'container "main" ended with exit code 7; restartPolicy Always' in str(known.message)
    assert "an unknown exit code" in str(unknown.message)
    assert not known.disruption


def test_a_pod_lives_while_one_of_its_containers_does() -> None:
    """A container that is done waits for the others."""
    pod = pod_of("Never", "main", "side")
    seen = instance(InstancePhase.RUNNING, end(0), container(Running(), "side"))

    assert outcome(pod, seen) is None
    assert outcome(pod, instance(InstancePhase.RUNNING, end(0))) is None
    both = instance(InstancePhase.RUNNING, end(0), end(0, "side"))
    assert outcome(pod, both) == ("Succeeded", None)


def test_an_ended_instance_ends_the_pod_although_not_all_ends_were_seen() -> None:
    """A container whose end nobody saw is no success."""
    pod = pod_of("Never", "main", "side")

    assert outcome(pod, instance(ENDED, end(0))) == ("Failed", None)
    half = instance(ENDED, end(0), container(Running(), "side"))
    assert outcome(pod, half) == ("Failed", None)


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (EndCause.LOST, "ProviderLost"),
        (EndCause.PREEMPTED, "Preempted"),
        (EndCause.IMAGE, "Rejected"),
        (EndCause.REFUSED, "Rejected"),
    ],
)
def test_an_end_that_is_the_backends_doing_is_a_disruption(cause: EndCause, reason: str) -> None:
    """A Job may ignore it (C121)."""
    verdict = judge(pod_of("Never"), instance(ENDED, ended_by=cause), restarts_in_place=False)

    assert verdict is not None
    assert (verdict.phase, verdict.reason, verdict.disruption) == ("Failed", reason, True)
    told = instance(ENDED, ended_by=cause, message="host died")
    assert judge(pod_of("Never"), told, restarts_in_place=True) == failed(reason, "host died")


def test_an_instance_that_ended_without_a_container_is_lost() -> None:
    """Nothing was observed to end, so nothing is invented."""
    verdict = judge(pod_of("Never"), instance(ENDED), restarts_in_place=False)

    assert verdict == failed("ProviderLost", "the instance ended, and the backend does not say why")


def test_a_kubelets_own_word_for_a_refusal_is_kept() -> None:
    """Alerts and people know it. A backend's word for anything else is none of theirs."""
    seen = instance(ENDED, ended_by=EndCause.REFUSED, reason="SysctlForbidden", message="no")

    verdict = judge(pod_of("Never"), seen, restarts_in_place=True)

    assert verdict is not None
    assert (verdict.reason, verdict.message) == ("SysctlForbidden", "no")
    lost = instance(ENDED, ended_by=EndCause.LOST, reason="HostGone", message="no")
    assert judge(pod_of("Never"), lost, restarts_in_place=True) == failed("ProviderLost", "no")


@pytest.mark.parametrize(
    "phase",
    [
        InstancePhase.STARTING,
        InstancePhase.RUNNING,
        InstancePhase.DELETING,
        InstancePhase.UNKNOWN,
    ],
)
def test_an_instance_without_an_end_judges_nobody(phase: InstancePhase) -> None:
    """Whatever it is up to."""
    seen = instance(phase, container(Waiting("Pulling")))

    assert outcome(pod_of("Always"), seen) is None


def test_a_backend_that_restarts_in_place_is_believed() -> None:
    """Until its own kubelet says that the pod is over (C109)."""
    crashed = instance(InstancePhase.RUNNING, end(1))

    assert outcome(pod_of("Always"), crashed, in_place=True) is None
    over = instance(ENDED, end(0))
    assert outcome(pod_of("Never"), over, in_place=True) == ("Succeeded", None)


def test_a_failed_init_container_ends_the_pod_by_its_policy() -> None:
    """Its end is the container's own, no loss of the backend's."""
    init = [{"name": "prepare"}]
    seen = instance(ENDED, init_containers=(end(1, "prepare"),))

    assert outcome(pod_of("Never", init=init), seen) == ("Failed", None)
    assert outcome(pod_of("Always", init=init), seen) == ("Failed", "ContainerExited")
    running = instance(InstancePhase.STARTING, init_containers=(end(1, "prepare"),))
    assert outcome(pod_of("Never", init=init), running) == ("Failed", None)
    assert outcome(pod_of("Never", init=init), seen, in_place=True) == ("Failed", None)


def test_an_init_container_that_succeeded_is_no_end() -> None:
    """The others go on."""
    pod = pod_of("Always", init=[{"name": "prepare"}])
    seen = instance(InstancePhase.RUNNING, init_containers=(end(0, "prepare"),))

    assert outcome(pod, seen) is None


def test_a_sidecar_may_end_after_the_others_and_not_before() -> None:
    """While they run it would have to be restarted."""
    pod = pod_of("Never", "main", "side", init=[{"name": "proxy", "restartPolicy": "Always"}])
    done = (end(0), end(0, "side"))
    over = instance(InstancePhase.RUNNING, *done, init_containers=(end(0, "proxy"),))
    assert outcome(pod, over) == ("Succeeded", None)

    half = instance(InstancePhase.RUNNING, end(0), init_containers=(end(0, "proxy"),))
    assert outcome(pod, half) == ("Failed", "ContainerExited")


def test_exit_codes_of_nothing_are_no_success() -> None:
    """Succeeded needs an observed end."""
    assert by_exit_codes(()) == Verdict("Failed")
    assert end_of(pod_of("Never"), instance(ENDED, end(0))) == Verdict("Succeeded")


def test_a_confirmed_absence_names_the_backend() -> None:
    """Where it is known."""
    assert "backend a" in (lost("a").message or "")
    assert lost(None) == failed("ProviderLost", "the instance is gone from the backend")


def test_a_silent_backend_is_given_up_only_on_request() -> None:
    """An outage of an API is not a death of a pod."""
    assert given_up("a", 1e9, None) is None
    assert given_up("a", 59.0, 60.0) is None
    assert given_up("a", 60.0, 60.0) == failed(
        "ProviderLost", "the backend a has given no list for 60 s"
    )


def test_the_deadline_counts_from_the_start_time() -> None:
    """As a kubelet does, and with its words: no disruption, which a Job may ignore for ever."""
    pod = make_pod(activeDeadlineSeconds=60, status=running_status())

    assert deadline(pod) == at(60)
    assert overdue(pod, at(59)) is None
    verdict = overdue(pod, at(60))
    assert verdict is not None
    assert (verdict.phase, verdict.reason) == ("Failed", "DeadlineExceeded")
    assert not verdict.disruption


@pytest.mark.parametrize(
    "pod", [make_pod(activeDeadlineSeconds=60), make_pod(status=running_status())]
)
def test_without_start_or_limit_there_is_no_deadline(pod: dict[str, Any]) -> None:
    """Nothing to count."""
    assert deadline(pod) is None
    assert overdue(pod, at(10_000)) is None
