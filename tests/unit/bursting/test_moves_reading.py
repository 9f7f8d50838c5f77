"""Deployments, ReplicaSets and autoscalers as moving pods needs them."""

from typing import Any

import pytest

from tests.unit.bursting.tiny_cluster import START
from vk_provider.bursting import names
from vk_provider.bursting.moves import Deployment, Phase, Relocation, Scaler
from vk_provider.bursting.moves_reading import (
    Revision,
    ScalerView,
    deployment_view,
    joined,
    revision_view,
    scaler_view,
)

STATE = Relocation(Phase.SURGING, 2, 3, START)


def chat(**status: int) -> dict[str, Any]:
    """A Deployment at its second generation."""
    metadata = {"uid": "d", "namespace": "web", "name": "chat", "resourceVersion": "7"}
    return {
        "metadata": {**metadata, "generation": 2},
        "spec": {"replicas": 3},
        "status": {"observedGeneration": 2, "updatedReplicas": 3, "replicas": 3, **status},
    }


def test_a_deployment_is_read_with_its_annotation() -> None:
    """Which is there even if nobody can read it."""
    obj = chat()
    obj["metadata"]["annotations"] = {names.EVACUATION: STATE.to_json()}
    assert deployment_view(obj) == Deployment(
        "d", "web", "chat", 3, "7", relocation=STATE, has_annotation=True
    )
    obj["metadata"]["annotations"] = {names.EVACUATION: "?"}
    assert deployment_view(obj) == Deployment("d", "web", "chat", 3, "7", has_annotation=True)


@pytest.mark.parametrize(
    "status", [{"observedGeneration": 1}, {"updatedReplicas": 2}, {"replicas": 4}]
)
def test_a_rollout_is_not_settled(status: dict[str, int]) -> None:
    """Its own numbers are moving."""
    assert deployment_view(chat()).is_settled
    assert not deployment_view(chat(**status)).is_settled


def test_an_odd_object_gives_a_modest_view() -> None:
    """One replica is what Kubernetes assumes."""
    assert deployment_view({"spec": {"replicas": "x"}}).replicas == 1
    assert revision_view({}) == Revision("", "")


def test_an_autoscaler_owns_its_target() -> None:
    """Its minimum is 1 unless it says otherwise."""
    obj = {
        "metadata": {"namespace": "web", "name": "hpa"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "chat"}, "maxReplicas": 9},
    }
    assert scaler_view(obj) == ScalerView("web", "Deployment", "chat", Scaler("hpa", 1, 9))


def test_what_belongs_together_is_joined() -> None:
    """ReplicaSets by their owner, autoscalers by name and namespace."""
    owners = [{"uid": "d", "controller": True}]
    revision = revision_view({"metadata": {"uid": "rs", "ownerReferences": owners}})
    scaler = Scaler("hpa", 1, 9)
    scalers = [
        ScalerView("web", "Deployment", "chat", scaler),
        ScalerView("web", "StatefulSet", "other", Scaler("s", 1, 2)),
    ]
    chat_, other = joined(
        [Deployment("d", "web", "chat", 1), Deployment("e", "web", "other", 1)],
        [revision, Revision("lone", "")],
        scalers,
    )
    assert (chat_.revisions, chat_.scaler) == (frozenset({"rs"}), scaler)
    assert (other.revisions, other.scaler) == (frozenset(), None)
