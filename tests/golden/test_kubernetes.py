"""Pods and what is created in another cluster for them, or every field that is refused.

A case is a folder under ``kubernetes/``: ``pod.yaml`` as the API server has it, ``created.yaml``
with ``{items, notes}`` or ``{refused}``, and, where the case needs more, ``input.yaml`` with
``config`` (the block) and ``objects`` (ConfigMaps, Secrets).
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from vk_provider_kubernetes.config import parse_config
from vk_provider_kubernetes.explain import explain

from tests.golden.conftest import Golden
from vk_provider.faults import UnsupportedFieldsError
from vk_provider.pods.references import ObjectKey
from vk_provider.pods.resolve import Missing, ResolveInput, resolve

CASES = sorted(path.parent for path in Path(__file__).parent.glob("kubernetes/*/pod.yaml"))
CLUSTER = "8f2e6b9a-0000-4000-8000-000000000001"
DEFAULT_CONFIG = {"kubeconfig": "/etc/other"}


def read(path: Path) -> dict[str, Any]:
    """A YAML mapping, empty where there is no file."""
    found: dict[str, Any] = yaml.safe_load(path.read_text()) if path.exists() else {}
    return found


def rendered(case: Path) -> dict[str, Any]:
    """What the translation makes of a case."""
    given = read(case / "input.yaml")
    config = parse_config({**DEFAULT_CONFIG, **given.get("config", {})}, "config", "burst", "other")
    objects: dict[ObjectKey, Any] = {
        ObjectKey(each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]): each
        for each in given.get("objects", [])
    }
    resolved = resolve(read(case / "pod.yaml"), objects, ResolveInput(CLUSTER, "burst", "10.0.0.7"))
    assert not isinstance(resolved, Missing), resolved
    try:
        found = explain(resolved, config)
    except UnsupportedFieldsError as error:
        return {"refused": [asdict(problem) for problem in error.problems]}
    return {"items": found.request["items"], "notes": [asdict(note) for note in found.notes]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_created_for_a_pod_is_what_is_recorded(case: Path, golden: Golden) -> None:
    """Word for word, but for what is masked."""
    golden(case / "created.yaml", rendered(case))


def test_there_are_enough_cases() -> None:
    """A folder that was misplaced would otherwise pass unseen."""
    assert len(CASES) >= 10
