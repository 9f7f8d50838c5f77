"""What one entry of RunPod's list proves: the derivation table, row by row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from vk_provider_runpod.observe import Remembered, observe, remember
from vk_provider_runpod.stamp import Mark

from vk_provider.pods.types import (
    EndCause,
    InstancePhase,
    InstanceRef,
    Observation,
    Running,
    Terminated,
    Waiting,
)

Make = Callable[..., dict[str, Any]]
NOW = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)


def seen(pod: dict[str, Any], mark: Mark, now: datetime = NOW) -> Observation:
    """The observation of an instance that is seen for the first time."""
    return observe(pod, remember(Remembered(mark), pod, now))


def running(uptime: int, **runtime: Any) -> dict[str, Any]:
    """The fields of a pod whose container runs."""
    return {"status": "RUNNING", "runtime": {"uptime": uptime} | runtime}


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "PROVISIONING"},
        {"status": "STARTING"},
        {"status": "RUNNING", "runtime": None},
        {"status": "RUNNING", "runtime": {}},
        {"status": "RUNNING", "runtime": {"uptime": 0}},
        {"status": "RUNNING", "runtime": {"uptime": "soon"}},
        {"status": "RUNNING", "runtime": {"uptime": -5}},
        {"status": "RUNNING", "runtime": {"uptime": 10**18}},
    ],
)
def test_running_without_an_uptime_is_starting(
    backend_pod: Make, mark: Mark, fields: dict[str, Any]
) -> None:
    """RunPod says RUNNING, and bills, while the image is pulled."""
    observation = seen(backend_pod(**fields), mark)

    assert observation.phase is InstancePhase.STARTING
    assert [each.state for each in observation.containers] == [Waiting()]


def test_an_uptime_is_a_running_container(backend_pod: Make, mark: Mark) -> None:
    """Under the name that the pod gave it, with everything the list tells."""
    observation = seen(backend_pod(**running(90)), mark)

    assert observation.phase is InstancePhase.RUNNING
    (container,) = observation.containers
    assert (container.name, container.image) == ("main", "registry.example/app:1")
    assert container.state == Running(NOW - timedelta(seconds=90))
    assert observation.ref == InstanceRef("abc123")
    assert observation.stamp == mark.stamp
    assert (observation.gpu_type, observation.data_center) == ("NVIDIA L40S", "EU-RO-1")
    assert observation.usd_per_hour == 0.86
    assert observation.created_at == datetime(2026, 6, 1, 12, tzinfo=UTC)
    assert observation.addresses == ()


@pytest.mark.parametrize("jitter", [-3, -1, 0, 1, 9])
def test_the_start_stays_steady_however_uptime_jitters(
    backend_pod: Make, mark: Mark, jitter: int
) -> None:
    """Equal instances are equal observations."""
    known = remember(Remembered(mark), backend_pod(**running(90)), NOW)
    later = backend_pod(**running(90 + 60 - jitter))

    again = remember(known, later, NOW + timedelta(seconds=60))

    assert again == known


def test_an_uptime_that_began_anew_is_the_containers_end(backend_pod: Make, mark: Mark) -> None:
    """RunPod restarts for ever; the first end is the only one that counts."""
    known = remember(Remembered(mark), backend_pod(**running(90)), NOW)
    anew = backend_pod(**running(2))

    known = remember(known, anew, NOW + timedelta(seconds=60))
    observation = observe(anew, known)

    assert observation.phase is InstancePhase.ENDED
    assert observation.ended_by is None
    (container,) = observation.containers
    assert isinstance(container.state, Terminated)
    assert container.state.exit_code is None
    assert container.state.started_at == NOW - timedelta(seconds=90)
    assert container.state.finished_at == NOW + timedelta(seconds=58)


def test_an_end_stays_the_first_one(backend_pod: Make, mark: Mark) -> None:
    """However often RunPod goes on restarting."""
    first = Remembered(mark, NOW, NOW + timedelta(seconds=30))

    later = remember(first, backend_pod(**running(1)), NOW + timedelta(seconds=300))

    assert later == first


def test_a_blip_of_the_runtime_is_no_end(backend_pod: Make, mark: Mark) -> None:
    """A host's daemon that is silent for two seconds proves nothing."""
    known = remember(Remembered(mark), backend_pod(**running(90)), NOW)
    blip = backend_pod(runtime=None)

    known = remember(known, blip, NOW + timedelta(seconds=10))

    assert observe(blip, known).containers == observe(backend_pod(**running(90)), known).containers


@pytest.mark.parametrize("status", ["EXITED", "ERROR"])
def test_stopped_by_nobody_of_ours_is_lost(backend_pod: Make, mark: Mark, status: str) -> None:
    """No credit, the host, a fatal image: RunPod doesn't say. A stale runtime is not believed."""
    known = remember(Remembered(mark), backend_pod(**running(90)), NOW)
    stopped = backend_pod(status=status, runtime={"uptime": 500})

    observation = observe(stopped, remember(known, stopped, NOW + timedelta(seconds=300)))

    assert (observation.phase, observation.ended_by) == (InstancePhase.ENDED, EndCause.LOST)
    assert observation.reason == status
    assert observation.usd_per_hour is None
    assert isinstance(observation.containers[0].state, Terminated)


def test_what_was_never_seen_running_ends_without_containers(backend_pod: Make, mark: Mark) -> None:
    """Whether it ever ran is not known, so nothing is said."""
    assert seen(backend_pod(status="EXITED"), mark).containers == ()


def test_an_image_that_cannot_be_pulled_is_an_end_though_billed(
    backend_pod: Make, mark: Mark
) -> None:
    """The host's line is the message."""
    line = "manifest for app:1 not found"

    observation = observe(backend_pod(), Remembered(mark, end=line))

    assert (observation.phase, observation.ended_by) == (InstancePhase.ENDED, EndCause.IMAGE)
    assert observation.containers[0].state == Waiting("ErrImagePull", line)
    assert line in (observation.message or "")


def test_a_host_that_cannot_start_it_is_lost(backend_pod: Make, mark: Mark) -> None:
    """Another machine may."""
    known = Remembered(mark, end="cuda>=13", end_cause=EndCause.LOST)

    observation = observe(backend_pod(), known)

    assert (observation.ended_by, observation.containers) == (EndCause.LOST, ())


@pytest.mark.parametrize("fields", [{"status": "HIBERNATING"}, {"status": None}, {"status": 7}])
def test_an_unknown_status_is_unknown(
    backend_pod: Make, mark: Mark, fields: dict[str, Any]
) -> None:
    """The pod stays as it is, and the message tells what was found."""
    observation = seen(backend_pod(**fields), mark)

    assert observation.phase is InstancePhase.UNKNOWN
    assert observation.containers == ()
    assert "not a known one" in (observation.message or "")


def test_http_ports_are_reached_through_the_proxy_and_tcp_directly(
    backend_pod: Make, mark: Mark
) -> None:
    """Carrier-grade and missing addresses are never published."""
    mappings = [
        {"private": 8000, "public": 1, "type": "http", "ip": "100.65.1.2"},
        {"private": 22, "public": 10022, "type": "tcp", "ip": "203.0.113.9"},
        {"private": 23, "public": None, "type": "tcp", "ip": "203.0.113.9"},
        {"private": 24, "public": 10024, "type": "tcp", "ip": "100.65.1.2"},
        {"private": 25, "public": 10025, "type": "tcp", "ip": None},
    ]
    ssh = {"proxy": None, "direct": {"command": "ssh root@203.0.113.9 -p 10022"}}
    ports = ["8000/http", "22/tcp", "8 0/http", "/http"]
    fields = running(9, ports=mappings) | {"ports": ports, "ssh": ssh}

    assert seen(backend_pod(**fields), mark).annotations == {
        "vk-provider.dev/endpoint-8000": "https://abc123-8000.proxy.runpod.net",
        "vk-provider.dev/endpoint-22": "203.0.113.9:10022",
        "vk-provider.dev/ssh": "ssh root@203.0.113.9 -p 10022",
    }


def test_endpoints_are_told_once_it_runs(backend_pod: Make, mark: Mark) -> None:
    """Before, the proxy answers 502."""
    assert seen(backend_pod(ports=["8000/http"]), mark).annotations == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"createdAt": "yesterday"},
        {"createdAt": "2026-06-01T12:00:00"},
        {"createdAt": None, "cost": "free", "gpu": None, "dataCenterId": None, "image": None},
    ],
)
def test_missing_facts_are_absent(backend_pod: Make, mark: Mark, fields: dict[str, Any]) -> None:
    """Nothing is invented for them."""
    observation = seen(backend_pod(**fields), mark)

    assert observation.created_at is None
    if "cost" in fields:
        facts = (observation.usd_per_hour, observation.gpu_type, observation.data_center)
        assert facts == (None, None, None)
        assert observation.containers[0].image is None
