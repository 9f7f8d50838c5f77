"""What the simulated service refuses, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from vk_provider_runpod.simulator import validation
from vk_provider_runpod.simulator.placing import RefusalError

BODY: dict[str, Any] = {"name": "a", "image": "b", "gpu": {"id": "g", "count": 1}}


def refusal(check: Callable[..., Any], *arguments: Any) -> RefusalError:
    """How something is refused."""
    with pytest.raises(RefusalError) as raised:
        check(*arguments)
    return raised.value


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"bogus": 1}, "additional properties 'bogus' not allowed"),
        ({"name": ""}, "missing property 'name'"),
        ({"name": 7}, "$.name: got integer, want string"),
        ({"image": None}, "$.image: got null, want string"),
        ({"env": {"A": 1}}, "$.env.A: got integer"),
        ({"env": []}, "$.env: got array, want object"),
        ({"ports": "80/http"}, "$.ports: got string, want array"),
        ({"disk": 0}, "$.disk: minimum"),
        ({"disk": 1.5}, "$.disk: got number"),
        ({"disk": True}, "$.disk: got boolean"),
        ({"cloud": "ALL"}, "$.cloud: value must be one of"),
        ({"gpu": {"count": 1}}, "$.gpu: missing property 'id'"),
        ({"gpu": {"id": "g", "count": 0}}, "$.gpu.count: minimum"),
        ({"gpu": {"id": "g", "minCudaVersion": "12"}}, "does not match pattern"),
        ({"gpu": {"id": "g", "minCudaVersion": 12}}, "want string"),
        ({"mounts": {"network": [{}, {}]}}, "maxItems"),
        ({"mounts": {"network": [{"volumeId": "v"}]}}, "missing property 'path'"),
        ({"mounts": {"persistent": {"size": 5, "path": "/x"}}}, "minimum"),
        ({"globalNetworking": 1}, "$.globalNetworking: got integer, want boolean"),
        ({"cpu": {"id": "", "vcpuCount": 2}}, "minLength"),
    ],
)
def test_a_body_against_the_schema_is_a_422_with_the_path(
    change: dict[str, Any], error: str
) -> None:
    """Every violation is listed."""
    found = refusal(validation.create_pod, {**BODY, **change})

    assert found.status == 422
    assert any(error in each for each in found.errors), found.errors


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"cpu": {"id": "c", "vcpuCount": 2}}, "exactly one"),
        (
            {"gpu": {"id": "g", "minCudaVersion": "1.0", "allowedCudaVersions": ["1.0"]}},
            "exclusive",
        ),
        ({"ports": ["80/udp"]}, "invalid port"),
        ({"ports": [f"{n}/http" for n in range(11)]}, "at most 10"),
        ({"env": {str(n): "" for n in range(51)}}, "at most 50"),
        ({"mounts": {"network": []}}, "clearing"),
        (
            {
                "mounts": {
                    "network": [{"volumeId": "v", "path": "/"}],
                    "persistent": {"size": 10, "path": "/"},
                }
            },
            "exclusive",
        ),
    ],
)
def test_a_body_against_the_rules_is_a_400(change: dict[str, Any], detail: str) -> None:
    """In prose only."""
    found = refusal(validation.create_pod, {**BODY, **change})

    assert (found.status, found.errors) == (400, ())
    assert detail in found.detail


def test_a_cpu_pod_has_no_host_local_storage() -> None:
    """The document says so."""
    mounts = {"persistent": {"size": 10, "path": "/x"}}
    body = {"name": "a", "image": "b", "cpu": {"id": "c", "vcpuCount": 2}, "mounts": mounts}

    assert "CPU pod" in refusal(validation.create_pod, body).detail


def test_templates_are_not_known_here() -> None:
    """We never send one."""
    assert refusal(validation.create_pod, {**BODY, "templateId": "t"}).status == 404
    assert refusal(validation.update_pod, {"templateId": "t"}).status == 404


@pytest.mark.parametrize("body", [None, [], "x", 7])
def test_what_is_no_object_is_refused(body: Any) -> None:
    """By every endpoint that takes one."""
    for check in (
        validation.create_pod,
        validation.update_pod,
        validation.pod_action,
        validation.create_registry,
    ):
        assert refusal(check, body).status == 422


def test_good_bodies_pass() -> None:
    """Unchanged."""
    registry = {"name": "n", "username": "u", "password": "p"}

    assert validation.create_pod({**BODY, "disk": 20.0, "registry": None}) == {
        **BODY,
        "disk": 20.0,
        "registry": None,
    }
    assert validation.update_pod({"locked": True}) == {"locked": True}
    assert validation.pod_action({"action": "stop"}) == "stop"
    assert validation.create_registry(registry) == registry
    assert refusal(validation.pod_action, {}).status == 422
    assert refusal(validation.create_registry, {"name": "n"}).status == 422


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"include": "AVAILABILITY"}, 400),
        ({"product": "POD"}, 400),
        ({"include": "AVAILABILITY", "product": "TPU"}, 422),
        ({"include": "AVAILABILITY", "product": "POD", "count": "0"}, 422),
        ({"include": "AVAILABILITY", "product": "POD", "cloud": "ALL"}, 422),
        ({"include": "AVAILABILITY", "product": "POD", "countryCodes": "fr"}, 422),
        (
            {
                "include": "AVAILABILITY",
                "product": "POD",
                "cudaVersions": "12.8",
                "minCudaVersion": "12",
            },
            400,
        ),
    ],
)
def test_catalogue_reads_are_checked_as_the_prose_says(query: dict[str, str], status: int) -> None:
    """400 for combinations, 422 for words."""
    assert refusal(validation.catalogue_query, query, ("POD",)).status == status


def test_logs_resume_from_the_most_precise_wish() -> None:
    """Cursor, then since, then tail."""
    moment = "2026-06-01T12:00:00Z"

    assert validation.log_query({}, None) == (None, 100, None)
    assert validation.log_query({"tail": "5", "source": "system"}, None) == ("system", 5, None)
    cursor = validation.log_query({"since": moment}, f"{moment}/000000000001")
    assert cursor == validation.log_query({"since": moment}, None)
    for query in ({"tail": "-1"}, {"tail": "6000"}, {"since": "soon"}, {"source": "x"}):
        assert refusal(validation.log_query, query, None).status == 422
    assert refusal(validation.centre_query, {"regions": "MOON"}).status == 422
