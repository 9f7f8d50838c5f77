"""Thirty manifests of inference servers as people find them in public, and what backends make of
them.

They are in ``tests/manifests``, beside ``node.yaml``, the node that they are judged by. Fed by
those files; feeds the golden test of the judgements and the test that runs what was accepted.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from vk_provider.offline.candidates import configured
from vk_provider.offline.explain import Judgement, explain
from vk_provider.offline.workloads import Manifests, read_manifests
from vk_provider.settings_file import load_settings
from vk_provider.yaml_documents import Complaint, read_documents

FOLDER = Path(__file__).parents[1] / "manifests"
NODE = FOLDER / "node.yaml"
FILES = tuple(sorted(path for path in FOLDER.glob("*.yaml") if path != NODE))


@cache
def manifests_in(file: Path) -> Manifests:
    """A file's one workload, and the ConfigMaps and Secrets beside it."""
    complaints: list[Complaint] = []
    found = read_manifests(list(read_documents(str(file), complaints)), complaints)
    assert not complaints, [str(complaint) for complaint in complaints]
    assert len(found.workloads) == 1, file
    return found


@cache
def judgements(file: Path) -> Mapping[str, Judgement]:
    """What each backend of the node says to a file, by the backend's name."""
    (report,) = explain(manifests_in(file), configured(load_settings([str(NODE)]).nodes))
    assert not report.unseen, f"{file.name} refers to {report.unseen}"
    return {each.candidate.name: each for each in report.judgements}


def bound(file: Path, node_name: str) -> dict[str, Any]:
    """The file's pod as the API server has it once it is bound to a node."""
    workload = manifests_in(file).workloads[0]
    metadata = {
        **workload.pod["metadata"],
        "name": file.stem,
        "namespace": workload.namespace,
        "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, file.stem)),
    }
    spec = {**workload.pod["spec"], "nodeName": node_name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def objects_of(file: Path) -> Iterator[dict[str, Any]]:
    """The ConfigMaps and Secrets of a file as the API server stores them."""
    for key, found in manifests_in(file).objects.items():
        stored = {k: v for k, v in found.items() if k != "stringData"}
        stored["metadata"] = {**found["metadata"], "namespace": key.namespace}
        plain = found.get("stringData", {})
        encoded = {k: base64.b64encode(v.encode()).decode() for k, v in plain.items()}
        yield {**stored, "data": {**found.get("data", {}), **encoded}}


def accepted(backend: str) -> tuple[Path, ...]:
    """The files that a backend would run."""
    return tuple(file for file in FILES if judgements(file)[backend].can_run)


def node_document(backend: str) -> dict[str, Any]:
    """The node with this backend alone."""
    found: dict[str, Any] = yaml.safe_load(NODE.read_text())
    backends = found["spec"]["backends"]
    found["spec"]["backends"] = [each for each in backends if each["name"] == backend]
    return found
