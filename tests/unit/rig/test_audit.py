"""Counting requests in an audit log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.rig import audit

NODE = "system:serviceaccount:vk-provider:vk-provider"


def event(
    ident: str, user: str = NODE, verb: str = "patch", code: int = 200, **reference: str
) -> dict[str, Any]:
    """One request as the API server logs it; without a reference it is one for /version."""
    path = "/".join(reference.values()) or "version?a=b"
    logged = {
        "auditID": ident,
        "stage": "ResponseComplete",
        "requestURI": f"/{path}",
        "verb": verb,
        "user": {"username": user},
        "responseStatus": {"code": code},
    }
    return logged | ({"objectRef": reference} if reference else {})


def logged(*events: dict[str, Any]) -> str:
    """The text of a log."""
    return "".join(json.dumps(each) + "\n" for each in events)


STATUS = event("1", resource="pods", subresource="status", namespace="a", name="p")
POD = event("2", resource="pods", namespace="a", name="p")
LEASE = event("3", verb="update", resource="leases", namespace="kube-node-lease", name="n")
REFUSED = event("4", verb="list", code=403, resource="secrets")
OTHER = event("5", user="admin", resource="pods", subresource="status", namespace="b", name="p")
ALL = [STATUS, POD, LEASE, REFUSED, OTHER]


def test_stages_of_one_request_count_once() -> None:
    """A watch is logged when it starts and when it ends."""
    started = event("1", verb="watch", resource="pods") | {"stage": "ResponseStarted"}
    ended = event("1", verb="watch", resource="pods")

    assert audit.parse(logged(started, POD, ended)) == [ended, POD]


def test_line_being_written_is_left_out() -> None:
    """The log is read while the server writes it."""
    assert audit.parse(logged(STATUS, POD)[:-5]) == [STATUS]


def test_read_from_a_mark(tmp_path: Path) -> None:
    """A test counts what came after it began."""
    path = tmp_path / "audit.log"
    path.write_text(logged(STATUS))
    mark = path.stat().st_size
    path.write_text(logged(STATUS, POD))

    assert audit.read(path, mark) == [POD]
    assert audit.read(path) == [STATUS, POD]


def test_no_log_yet_is_no_request(tmp_path: Path) -> None:
    """The file appears with the first request."""
    assert audit.read(tmp_path / "audit.log") == []


def test_requests_of_a_user_by_verb_and_resource() -> None:
    """The table that a test of the node's traffic compares."""
    assert audit.requests_of(ALL, NODE) == {
        ("patch", "pods/status"): 1,
        ("patch", "pods"): 1,
        ("update", "leases"): 1,
        ("list", "secrets"): 1,
    }


def test_resource_does_not_include_its_subresources() -> None:
    """A status patch is no change of the pod."""
    assert audit.select(ALL, resource="pods") == [POD]


def test_count_narrows_by_fields_of_the_object() -> None:
    """By namespace, name or group."""
    assert audit.count(ALL, resource="pods/status") == 2
    assert audit.count(ALL, resource="pods/status", namespace="b") == 1
    assert audit.count(ALL, user=NODE, verb="update", name="n") == 1


def test_forbidden_requests() -> None:
    """What a hole in the RBAC looks like."""
    assert audit.forbidden(ALL) == [REFUSED]
    assert audit.forbidden(ALL, "admin") == []


def test_request_without_object_is_named_by_its_path() -> None:
    """Discovery and version have no resource."""
    assert audit.resource_of(event("6", verb="get")) == "/version"


def test_description_says_who_what_and_the_answer() -> None:
    """It stands in the message of a failed assertion."""
    assert audit.describe([REFUSED]) == f"{NODE} list /secrets -> 403"
