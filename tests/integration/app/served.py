"""Runs every inference server that a backend accepts on one virtual node until all are Ready.

The home cluster is the model API server, which holds what the manifests bring. Fed by
``tests/manifests``; feeds the tests of each backend.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.integration.app.test_virtual_node import VERSION, running
from tests.support.eventually import eventually
from tests.support.inference_servers import FILES, accepted, bound, node_document, objects_of
from tests.support.model_apiserver import ModelApiServer
from vk_provider.faults import FieldProblem
from vk_provider.settings import NodeSettings
from vk_provider.settings_parse import parse_node

READY_SECONDS = 90.0


@asynccontextmanager
async def home() -> AsyncIterator[ModelApiServer]:
    """An API server that has all the manifests bring, but for their pods."""
    async with ModelApiServer() as server:
        server.lie(200, path="/version", times=1000, body=VERSION)
        for file in FILES:
            for each in objects_of(file):
                server.store.put(f"{each['kind'].lower()}s", each)
        yield server


def node_of(backend: str, **config: Any) -> NodeSettings:
    """The manifests' node with one backend, on ports that the system picks."""
    document = node_document(backend)
    spec = document["spec"]
    spec["backends"][0]["config"] |= config
    spec |= {
        "clusterId": "home",
        "tickSeconds": 0.2,
        "leaderElection": {"enabled": False},
        "server": {"port": 0, "plainPort": 0, "address": "127.0.0.1"},
    }
    problems: list[FieldProblem] = []
    node = parse_node(document, problems)
    assert not problems, [str(problem) for problem in problems]
    return node


def not_ready(api: ModelApiServer, backend: str) -> Mapping[str, Any]:
    """The statuses of the accepted pods that are not Ready."""
    found = {}
    for file in accepted(backend):
        status = api.store.objects["pods", "default", file.stem]["status"]
        conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
        if conditions.get("Ready") != "True":
            found[file.stem] = status
    return found


@asynccontextmanager
async def all_ready(backend: str, **config: Any) -> AsyncIterator[ModelApiServer]:
    """Every accepted pod is Ready on a node that runs as long as the block."""
    node = node_of(backend, **config)
    async with home() as api:
        for file in accepted(backend):
            api.store.put("pods", bound(file, node.name))
        async with running(api, node):
            try:
                await eventually(lambda: not not_ready(api, backend), seconds=READY_SECONDS)
            except AssertionError as error:
                raise AssertionError(f"not Ready: {not_ready(api, backend)}") from error
            yield api
