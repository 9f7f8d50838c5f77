"""The annotations that steer an instance across a process boundary."""

from __future__ import annotations

import json

import pytest

from vk_provider.faults import UnsupportedFieldsError
from vk_provider.pods.types import IMPLICIT_OFFER, EndCause
from vk_provider.testing.builders import make_container, make_resolved_pod
from vk_provider.testing.fake_config import FakeConfig
from vk_provider.testing.fake_translate import PREFIX, plan_for, request_for


def test_ended_by_makes_the_end_the_machines() -> None:
    """The annotation names one of the causes that the seam knows."""
    pod = make_resolved_pod(metadata={"annotations": {PREFIX + "ended-by": "Preempted"}})

    assert plan_for(pod, FakeConfig()).ended_by is EndCause.PREEMPTED


def test_an_unknown_cause_is_refused_by_its_path() -> None:
    """What can't be honoured is never ignored."""
    pod = make_resolved_pod(metadata={"annotations": {PREFIX + "ended-by": "boredom"}})

    with pytest.raises(UnsupportedFieldsError, match=r"ended-by\]: found .boredom., allowed: Lost"):
        request_for(pod, IMPLICIT_OFFER)


def test_a_container_first_writes_what_it_was_asked_to_run() -> None:
    """Only if the annotation asks for it; the plan's repr stays silent."""
    containers = [make_container(env=[{"name": "A", "value": "b"}], args=["$(A)"])]
    pod = make_resolved_pod(
        containers=containers, metadata={"annotations": {PREFIX + "log-request": "true"}}
    )

    plan = plan_for(pod, FakeConfig())

    shown = json.loads(plan.openings["main"])
    assert (shown["env"], shown["args"]) == ({"A": "b"}, ["b"])
    assert "openings" not in repr(plan)
    assert not plan_for(make_resolved_pod(), FakeConfig()).openings
