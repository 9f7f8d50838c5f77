"""The simulator's answers are those of RunPod's own OpenAPI document, for valid and for bad calls.

Every operation that the simulator serves is called with generated requests; each answer's status,
type, headers and body must be what the document promises. Derandomised and bounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs  # schemathesis rests on it
import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from vk_provider_runpod.simulator import Options, Simulator
from vk_provider_runpod.simulator.app import ROUTES
from vk_provider_runpod.simulator.model import Volume

from tests.integration.runpod.conftest import API_KEY, in_thread

DOCUMENT = json.loads((Path(__file__).parents[2] / "specs" / "runpod-openapi-v2.json").read_text())
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [operation for operation, *_ in ROUTES]
HEADERS = {"Authorization": f"Bearer {API_KEY}", "User-Agent": "openapi-test/1"}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
STREAMED = ("response_schema_conformance",)
EXAMPLES = 30


@pytest.fixture(scope="module")
def service() -> Iterator[Simulator]:
    """One simulator for all calls, with something to be found."""
    with in_thread(Options(speed=0, api_key=API_KEY, requests_per_minute=1_000_000)) as simulator:
        yield simulator


@pytest.fixture
def known_ids(service: Simulator) -> dict[str, str]:
    """An id that exists, by the first part of the path."""
    state = service.state
    ended = state.model.pods[state.add_foreign("ended")]
    state.model.end(ended, "EXITED", state.clock.now())
    state.model.registries["reg1"] = "a registry"
    state.model.volumes["vol1"] = Volume("vol1", "a volume", 10, "EU-RO-1")
    return {
        "pods": ended.id,
        "registries": "reg1",
        "network-volumes": "vol1",
        "gpus": "NVIDIA L4",
        "cpus": "cpu5c",
        "datacenters": "EU-RO-1",
    }


def operation_of(name: str) -> Any:
    """The document's operation of that id."""
    return SCHEMA.find_operation_by_id(name)


def checks_of(name: str) -> list[Any]:
    """All checks, but for the stream: the document calls it one text, the checker reads events."""
    return [each for each in CHECKS if name != "getPodLogs" or each.__name__ not in STREAMED]


@pytest.mark.parametrize("name", OPERATIONS)
def test_answers_conform_to_the_document(
    name: str, service: Simulator, known_ids: dict[str, str]
) -> None:
    """Whatever the request; every second one meets something that exists."""
    operation = operation_of(name)
    modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    calls = 0

    for mode in modes:

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            deadline=None,
            database=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            nonlocal calls
            calls += 1
            if calls % 2 and "id" in case.path_parameters:
                case.path_parameters["id"] = known_ids[case.path.split("/{id}")[0].split("/")[-1]]
            response = case.call(base_url=service.url, headers=HEADERS, timeout=10)
            case.validate_response(response, checks=checks_of(name))

        check()

    assert calls


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(("kind", "status"), [("throttled", 429), ("unauthorized", 401)])
def test_refusals_conform_to_the_document(
    name: str, kind: str, status: int, service: Simulator, known_ids: dict[str, str]
) -> None:
    """Those that any call may meet."""
    service.state.faults.add(kind, count=1, operation=name)
    operation = operation_of(name)
    case = operation.Case(path_parameters={"id": "x"} if "{id}" in operation.path else {})

    response = case.call(base_url=service.url, headers=HEADERS, timeout=10)

    assert response.status_code == status
    case.validate_response(response, checks=checks_of(name))


def test_every_operation_of_a_pods_life_is_served() -> None:
    """Pods, catalogue, registries and logs; a typing error would leave one out unseen."""
    tags = {"Pods", "Catalog", "Registries"}
    documented = {
        operation["operationId"]
        for path in DOCUMENT["paths"].values()
        for operation in path.values()
        if isinstance(operation, dict) and tags & set(operation.get("tags", ()))
    }

    assert documented - set(OPERATIONS) == {
        "listPublicTemplates",
        "listDelegations",
        "createDelegation",
        "revokeDelegation",
    }


GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "runpod").glob("*/request.yaml"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_recorded_requests_conform_to_the_document(path: Path) -> None:
    """What we send is as much the document's as what the simulator answers."""
    request = yaml.safe_load(path.read_text()).get("request")
    schema = {"$ref": "#/components/schemas/CreatePodRequest", "components": DOCUMENT["components"]}
    check = jsonschema_rs.Draft202012Validator(schema)

    assert request is None or [error.message for error in check.iter_errors(request)] == []
    assert not check.is_valid({"image": "without a name"})
