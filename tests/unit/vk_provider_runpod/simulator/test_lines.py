"""A simulated pod's log as a function of time."""

from __future__ import annotations

from dataclasses import replace

from vk_provider_runpod.simulator.lines import MOST_LINES, lines
from vk_provider_runpod.simulator.model import Behaviour, Model, SimulatedPod

BEHAVIOUR = Behaviour(pull_seconds=4, log_lines=("hello",), log_every_seconds=5)


def make_pod(behaviour: Behaviour = BEHAVIOUR) -> SimulatedPod:
    """A pod that was made at 100."""
    body = {"name": "a", "image": "b:1", "gpu": {"id": "NVIDIA L4", "count": 1}}
    return Model(default=behaviour).create("p", body, 100)


def test_the_host_speaks_while_the_image_is_pulled_and_the_container_after() -> None:
    """In the order of time."""
    found = [(line.at, line.source, line.text) for line in lines(make_pod(), 110)]

    assert found == [
        (100, "system", "create container b:1"),
        (100, "system", "still fetching image b:1"),
        (102, "system", "still fetching image b:1"),
        (104, "system", "Status: Downloaded newer image for b:1"),
        (104, "system", "start container"),
        (104, "container", "hello"),
        (109, "container", "tick 1"),
    ]


def test_a_line_keeps_its_id_as_time_goes_by() -> None:
    """So that a stream can be resumed."""
    pod = make_pod()
    early = {line.event_id: line.text for line in lines(pod, 110)}
    late = {line.event_id: line.text for line in lines(pod, 1000)}
    rest = {line.event_id: line.text for line in lines(pod, 1000, after=109)}

    assert early.items() <= late.items()
    assert rest.items() <= late.items()
    assert len(early) == 7
    assert min(rest) >= max(early)


def test_an_unpullable_image_ends_the_log_with_the_error() -> None:
    """No container ever speaks."""
    pod = make_pod(replace(BEHAVIOUR, pull_error="manifest unknown"))

    assert lines(pod, 200)[-1].text == "manifest unknown"


def test_each_run_begins_anew() -> None:
    """After a restart the first lines come again."""
    pod = make_pod(replace(BEHAVIOUR, run_seconds=3, restart_seconds=1))

    said = [line.text for line in lines(pod, 113) if line.source == "container"]

    assert said == ["hello", "hello", "hello"]


def test_a_stopped_pod_says_no_more() -> None:
    """And one that was told to says what it was told."""
    pod = make_pod()
    pod.said.append((106, "container", "by hand"))
    pod.ended = ("EXITED", 107)

    assert [line.text for line in lines(pod, 500)][-2:] == ["hello", "by hand"]


def test_a_silent_container_is_silent() -> None:
    """After its first lines."""
    pod = make_pod(replace(BEHAVIOUR, log_every_seconds=0))

    assert lines(pod, 5000)[-1].text == "hello"


def test_only_the_last_lines_are_kept() -> None:
    """As many as the service hands out."""
    assert len(lines(make_pod(), 1_000_000)) == MOST_LINES
