"""The resource in a path, as a metric's label."""

from __future__ import annotations

import pytest

from vk_provider.kube.observer import Unobserved, resource_of


@pytest.mark.parametrize(
    ("target", "resource"),
    [
        ("/api/v1/pods?watch=true", "pods"),
        ("/api/v1/namespaces/ns/pods/web/status?fieldManager=x", "pods/status"),
        ("/api/v1/nodes/burst", "nodes"),
        ("/api/v1/namespaces/kube-system", "namespaces"),
        ("/apis/coordination.k8s.io/v1/namespaces/ns/leases/a", "leases"),
        ("/version", "version"),
    ],
)
def test_a_label_has_few_values(target: str, resource: str) -> None:
    """No names of objects or namespaces."""
    assert resource_of(target) == resource


def test_nobody_is_told_by_default() -> None:
    """The client works without an observer."""
    Unobserved().request("GET", "pods", 200)
    Unobserved().watch_restarted("pods", "Ended")
