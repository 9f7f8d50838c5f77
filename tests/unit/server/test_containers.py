"""A kubelet's sentences about containers without a log."""

from typing import Any

import pytest

from vk_provider.server.containers import container_spec, has_ended, log_refusal


def pod(state: dict[str, Any] | None, last: dict[str, Any] | None = None) -> dict[str, Any]:
    status = {"name": "c", "state": state or {}, "lastState": last or {}}
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]},
        "status": {} if state is None else {"containerStatuses": [status]},
    }


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (None, 'container "c" in pod "p" is not available'),
        (
            {"waiting": {"reason": "ContainerCreating"}},
            'container "c" in pod "p" is waiting to start: ContainerCreating',
        ),
        (
            {"waiting": {"reason": "ErrImagePull"}},
            'container "c" in pod "p" is waiting to start: image can\'t be pulled',
        ),
        (
            {"waiting": {"reason": "ImagePullBackOff"}},
            'container "c" in pod "p" is waiting to start: trying and failing to pull image',
        ),
        ({"waiting": {}}, 'container "c" in pod "p" is waiting to start - no logs yet'),
        ({}, 'container "c" in pod "p" is waiting to start - no logs yet'),
        ({"running": {}}, None),
        ({"terminated": {"exitCode": 0}}, None),
    ],
)
def test_the_sentence_for_each_state(state: dict[str, Any] | None, text: str | None) -> None:
    """Word by word."""
    assert log_refusal(pod(state), "c", previous=False) == text


def test_a_container_that_waits_to_run_again_shows_its_last_run() -> None:
    """As a kubelet does in CrashLoopBackOff."""
    waiting = pod({"waiting": {"reason": "CrashLoopBackOff"}}, {"terminated": {"exitCode": 1}})
    assert log_refusal(waiting, "c", previous=False) is None
    assert log_refusal(waiting, "c", previous=True) is None


def test_no_previous_run() -> None:
    """The sentence kubectl users know."""
    text = log_refusal(pod({"running": {}}), "c", previous=True)
    assert text == 'previous terminated container "c" in pod "p" not found'


def test_containers_of_every_kind_are_found() -> None:
    """Init containers have logs, too."""
    assert container_spec(pod(None), "i") is not None
    assert container_spec(pod(None), "x") is None
    assert container_spec({}, "x") is None


def test_an_end_is_seen_in_the_phase_or_the_state() -> None:
    """A follow stops at either."""
    assert has_ended(pod({"terminated": {}}), "c")
    assert has_ended({"status": {"phase": "Failed"}}, "c")
    assert not has_ended(pod({"running": {}}), "c")
    assert not has_ended({}, "c")
