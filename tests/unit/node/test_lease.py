"""The Lease: its shape, its owner, and when it is due."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from vk_provider.node import lease

NOW = datetime(2024, 5, 1, 10, 0, 0, 250, tzinfo=UTC)


def test_a_new_lease_is_the_kubelets() -> None:
    """40 s, held by the node's name, owned by the Node, six digits."""
    assert lease.render_lease("burst", NOW, "u1") == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "burst",
            "namespace": "kube-node-lease",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "burst", "uid": "u1"}],
        },
        "spec": {
            "holderIdentity": "burst",
            "leaseDurationSeconds": 40,
            "renewTime": "2024-05-01T10:00:00.000250Z",
        },
    }


def test_a_renewal_keeps_the_resource_version_and_what_others_wrote() -> None:
    """So that a lost race is a conflict, and labels survive."""
    current: dict[str, Any] = {
        "metadata": {
            "resourceVersion": "7",
            "labels": {"a": "b"},
            "ownerReferences": [{"uid": "u1"}],
        },
        "spec": {"renewTime": "old", "strategy": "x"},
    }
    renewed = lease.render_lease("burst", NOW, None, current)

    assert renewed["metadata"]["resourceVersion"] == "7"
    assert renewed["metadata"]["labels"] == {"a": "b"}
    assert renewed["metadata"]["ownerReferences"] == [{"uid": "u1"}]
    assert renewed["spec"]["strategy"] == "x"
    assert renewed["spec"]["renewTime"] == "2024-05-01T10:00:00.000250Z"
    assert current["spec"]["renewTime"] == "old"


def test_micro_times_are_utc() -> None:
    """Whatever zone they come in."""
    east = datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))

    assert lease.micro_time(east) == "2024-05-01T10:00:00.000000Z"


@pytest.mark.parametrize(
    ("age", "jitter", "due"),
    [(9.9, 0.0, False), (10.0, 0.0, True), (9.7, 1.0, True), (9.5, 1.0, False), (-1.0, 0.0, True)],
)
def test_a_renewal_is_due_every_quarter_of_the_lease(age: float, jitter: float, due: bool) -> None:
    """Jitter only brings it forward; a clock that was set back makes it due."""
    assert lease.is_due(NOW - timedelta(seconds=age), NOW, jitter) is due


def test_the_first_renewal_is_due_at_once() -> None:
    """Nothing was renewed yet."""
    assert lease.is_due(None, NOW)


def test_slow_renewals_leave_room_for_tries() -> None:
    """With each PUT 3 s late, a gap is a quarter of the lease plus the delay."""
    assert lease.INTERVAL_SECONDS + 3 < lease.DURATION_SECONDS / 2
