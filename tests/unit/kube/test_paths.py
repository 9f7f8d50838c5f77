"""Where things live on the API server."""

from __future__ import annotations

import pytest

from vk_provider.kube import paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (paths.pods(), "/api/v1/pods"),
        (paths.pods("ns"), "/api/v1/namespaces/ns/pods"),
        (paths.pod_status("ns", "p"), "/api/v1/namespaces/ns/pods/p/status"),
        (paths.nodes(), "/api/v1/nodes"),
        (paths.node_status("n"), "/api/v1/nodes/n/status"),
        (paths.namespace("kube-system"), "/api/v1/namespaces/kube-system"),
        (paths.event("ns", "a.1"), "/api/v1/namespaces/ns/events/a.1"),
        (paths.lease("ns", "n"), "/apis/coordination.k8s.io/v1/namespaces/ns/leases/n"),
        (
            paths.token_requests("ns", "robot"),
            "/api/v1/namespaces/ns/serviceaccounts/robot/token",
        ),
        (
            paths.mutating_webhook_configuration("n"),
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/n",
        ),
        (paths.token_reviews(), "/apis/authentication.k8s.io/v1/tokenreviews"),
        (
            paths.subject_access_reviews(),
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        ),
    ],
)
def test_paths(path: str, expected: str) -> None:
    """Each is what the API server serves."""
    assert path == expected


def test_a_name_cannot_leave_its_segment() -> None:
    """A slash in a name is a part of the name."""
    assert paths.pod("ns", "a/../b") == "/api/v1/namespaces/ns/pods/a%2F..%2Fb"
