"""The simulated service's state machine, with time as an argument."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from vk_provider_runpod.simulator.model import (
    Behaviour,
    Model,
    actions,
)
from vk_provider_runpod.simulator.placing import NO_CAPACITY, RefusalError

from vk_provider.testing.simulator.account import Rule

BODY = {"name": "a", "image": "b:1", "gpu": {"id": "NVIDIA L4", "count": 1}}


def model(**fields: Any) -> Model:
    """A model whose images take ten seconds."""
    return Model(default=Behaviour(pull_seconds=10), **fields)


def test_a_pod_is_running_and_billed_at_once_and_runs_after_the_pull() -> None:
    """As observed; the document says otherwise."""
    service = model()
    pod = service.create("p", BODY, 100)

    assert pod.status(100) == "RUNNING"
    assert [pod.uptime(now) for now in (100, 109, 110, 115.9)] == [None, None, 0, 5]
    assert [each.start for each in service.ledger.open_intervals()] == [100]


def test_a_container_that_exits_is_restarted_for_ever() -> None:
    """With its uptime reset, and a pause between."""
    service = model()
    service.default = Behaviour(pull_seconds=10, run_seconds=20, restart_seconds=5)
    pod = service.create("p", BODY, 100)

    assert [pod.uptime(now) for now in (129, 131, 136, 1132)] == [19, None, 1, None]
    assert pod.status(1135) == "RUNNING"


def test_an_image_that_cannot_be_pulled_goes_exited() -> None:
    """After some seconds, and its disk is billed."""
    service = model()
    service.default = Behaviour(pull_seconds=4, pull_error="manifest unknown")
    pod = service.create("p", BODY, 100)

    assert service.listed(103)[0].status(103) == "RUNNING"
    assert service.listed(110)[0].status(110) == "EXITED"
    assert [(c.kind, c.start) for c in service.ledger.charges] == [
        ("compute", 100),
        ("storage", 104),
    ]
    assert pod.ended == ("EXITED", 104)


def test_lists_lag_in_both_directions() -> None:
    """A young pod is missing, a deleted one lingers as EXITED."""
    service = model(list_lag_seconds=5)
    pod = service.create("p", BODY, 100)

    assert [len(service.listed(now)) for now in (104, 105)] == [0, 1]
    service.delete("p", 200)
    assert service.listed(204)[0].status(204) == "EXITED"
    assert service.listed(205) == []
    assert pod.id not in service.present
    with pytest.raises(RefusalError):
        service.get("p", 201)


def test_a_dead_host_leaves_at_once() -> None:
    """Nobody took leave of it."""
    service = model(list_lag_seconds=5)
    service.create("p", BODY, 100)

    service.vanish("p", 200)

    assert service.listed(200) == []
    assert [each.end for each in service.ledger.charges] == [200]


def test_a_lingering_delete_bills_on() -> None:
    """204 does not mean gone."""
    service = model()
    service.create("p", BODY, 100)

    service.delete("p", 200, lingering=60)

    assert len(service.listed(259)) == 1
    assert service.listed(261) == []
    assert service.ledger.charges[0].end == 260


def test_stopping_frees_the_gpu_and_starting_needs_one() -> None:
    """Which may be gone by then."""
    service = model()
    service.catalogue.limits[("NVIDIA L4", "*")] = 1
    service.create("p", BODY, 100)
    with pytest.raises(RefusalError, match="no longer any"):
        service.create("q", BODY, 100)

    service.act("p", "stop", 150)
    service.create("q", BODY, 160)

    with pytest.raises(RefusalError, match="not enough free GPUs"):
        service.act("p", "start", 170)
    service.delete("q", 180)
    started = service.act("p", "start", 190)
    assert started is not None
    assert (started.status(190), started.uptime(199), started.uptime(201)) == ("RUNNING", None, 1)


def test_actions_are_those_the_status_permits() -> None:
    """Everything else is a 409."""
    service = model()
    pod = service.create("p", BODY, 100)
    pod.locked = True

    for action in ("start", "stop"):
        with pytest.raises(RefusalError) as raised:
            service.act("p", action, 110)
        assert raised.value.status == 409
    assert service.act("p", "restart", 120) is pod
    assert service.act("p", "terminate", 130) is None
    assert actions("ANYTHING") == ("terminate",)


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"gpu": {"id": "NVIDIA L4"}}, NO_CAPACITY),
        ({"gpu": {"id": "NVIDIA L4", "count": 9}}, NO_CAPACITY),
        ({"gpu": {"id": "NVIDIA L4", "count": 1, "minCudaVersion": "99.0"}}, NO_CAPACITY),
        ({"gpu": {"id": "NVIDIA L4", "count": 1, "allowedCudaVersions": ["11.0"]}}, NO_CAPACITY),
        ({"dataCenterIds": ["XX-1"]}, NO_CAPACITY),
        ({"gpu": {"id": "Voodoo", "count": 1}}, "unknown gpu"),
        ({"gpu": None, "cpu": {"id": "cpu5c", "vcpuCount": 3}}, "invalid cpu"),
        ({"gpu": None, "cpu": {"id": "cpu5c", "vcpuCount": 64}}, "invalid cpu"),
        ({"gpu": None, "cpu": {"id": "none", "vcpuCount": 2}}, "invalid cpu"),
        ({"gpu": None, "cpu": {"id": "cpu5c", "vcpuCount": 2}, "dataCenterIds": []}, None),
    ],
)
def test_what_cannot_be_placed_is_refused_in_the_services_words(
    change: dict[str, Any], detail: str | None
) -> None:
    """A missing count and a CUDA version that nobody has look like no capacity."""
    service = model()

    if detail is None:
        assert service.create("p", {**BODY, **change}, 100).data_center
        return
    with pytest.raises(RefusalError) as raised:
        service.create("p", {**BODY, **change}, 100)

    assert raised.value.status == 400
    assert detail in raised.value.detail


def test_the_price_is_the_clouds_for_all_gpus() -> None:
    """And a data centre that has one."""
    body = {**BODY, "gpu": {"id": "NVIDIA L40S", "count": 2}, "cloud": "COMMUNITY"}

    pod = model().create("p", {**body, "dataCenterIds": ["AP-JP-1"]}, 100)

    assert (pod.cost, pod.data_center) == (1.58, "AP-JP-1")


def test_a_behaviour_is_chosen_by_rule_or_by_the_manifest() -> None:
    """So that a manifest can rehearse its own end."""
    service = model()
    service.rules.append(Rule("crash", replace(service.default, run_seconds=1)))

    crashing = service.create("p", {**BODY, "image": "crash:1"}, 100)
    own = service.create("q", {**BODY, "env": {"SIMULATE_RUN_SECONDS": "7"}}, 100)
    plain = service.create("r", {**BODY, "env": {"SIMULATE_RUN_SECONDS": "long"}}, 100)

    runs = [each.behaviour.run_seconds for each in (crashing, own, plain)]
    assert runs == [1, 7, None]
