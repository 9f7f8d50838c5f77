"""Pods and the create calls that RunPod is sent for them, or every field that is refused.

A case is a folder under ``runpod/``: ``pod.yaml`` as the API server has it, ``request.yaml`` with
``{request, notes}`` or ``{refused}``, and, where the case needs more, ``input.yaml`` with
``config`` (the block), ``offer`` (fields of one), ``objects`` (ConfigMaps, Secrets), ``registry``
and ``known`` (what only the account can tell).
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from vk_provider_runpod.config import parse_config
from vk_provider_runpod.offers import known_offers
from vk_provider_runpod.translate import Known, translate

from tests.golden.conftest import Golden
from vk_provider.faults import UnsupportedFieldsError
from vk_provider.pods.hints import hints
from vk_provider.pods.references import ObjectKey
from vk_provider.pods.resolve import Missing, ResolveInput, resolve
from vk_provider.pods.types import Offer, ResolvedPod

CASES = sorted(path.parent for path in Path(__file__).parent.glob("runpod/*/pod.yaml"))
DEFAULT_CONFIG = {"apiKey": {"env": "RUNPOD_API_KEY"}, "gpuTypes": ["NVIDIA L40S"]}


def read(path: Path) -> dict[str, Any]:
    """A YAML mapping, empty where there is no file."""
    found: dict[str, Any] = yaml.safe_load(path.read_text()) if path.exists() else {}
    return found


def resolved_pod(pod: dict[str, Any], objects: list[dict[str, Any]]) -> ResolvedPod:
    """The pod with everything it refers to, as the core hands it to the provider."""
    known: dict[ObjectKey, Any] = {
        ObjectKey(each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]): each
        for each in objects
    }
    given = ResolveInput("8f2e6b9a-0000-4000-8000-000000000001", "burst", hints=hints(pod)[0])
    resolved = resolve(pod, known, given)
    assert not isinstance(resolved, Missing), resolved
    return resolved


def rendered(case: Path) -> dict[str, Any]:
    """What the translation makes of a case."""
    given = read(case / "input.yaml")
    config = parse_config({**DEFAULT_CONFIG, **given.get("config", {})}, "config")
    pod = resolved_pod(read(case / "pod.yaml"), given.get("objects", []))
    offer = Offer(**given["offer"]) if "offer" in given else known_offers(pod.gpu_count, config)[0]
    try:
        found = translate(
            pod, offer, config, Known(given.get("registry"), **given.get("known", {}))
        )
    except UnsupportedFieldsError as error:
        return {"refused": [asdict(problem) for problem in error.problems]}
    return {"request": dict(found.body), "notes": [asdict(note) for note in found.notes]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_request_for_a_pod_is_the_recorded_one(case: Path, golden: Golden) -> None:
    """Word for word: what is sent decides what is billed."""
    golden(case / "request.yaml", rendered(case))


def test_there_are_enough_cases() -> None:
    """A folder that was misplaced would otherwise pass unseen."""
    assert len(CASES) >= 12
