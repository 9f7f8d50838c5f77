"""Pods and the create calls that RunPod is sent for them, or every field that is refused.

A case is a folder under ``runpod/``: ``pod.yaml`` as the API server has it, ``request.yaml`` with
``{request, notes}`` or ``{refused}``, and, where the case needs more, ``input.yaml`` with
``config`` (the block), ``offer`` (fields of one), ``objects`` (ConfigMaps, Secrets), ``registry``
and ``known`` (what only the account can tell).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from vk_provider_runpod.config import parse_config
from vk_provider_runpod.offers import known_offers
from vk_provider_runpod.translate import Known, translate

from tests.golden.conftest import Golden
from tests.golden.translations import cases, read, rendered, resolved_pod
from vk_provider.pods.types import FieldNote, Offer

CASES = cases("runpod")
DEFAULT_CONFIG = {"apiKey": {"env": "RUNPOD_API_KEY"}, "gpuTypes": ["NVIDIA L40S"]}


def request_for(case: Path) -> dict[str, Any]:
    """What the translation makes of a case."""
    given, pod = read(case / "input.yaml"), resolved_pod(case)
    config = parse_config({**DEFAULT_CONFIG, **given.get("config", {})}, "config")
    offer = Offer(**given["offer"]) if "offer" in given else known_offers(pod.gpu_count, config)[0]
    known = Known(given.get("registry"), **given.get("known", {}))

    def translated() -> tuple[dict[str, Any], Sequence[FieldNote]]:
        found = translate(pod, offer, config, known)
        return dict(found.body), found.notes

    return rendered("request", translated)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_request_for_a_pod_is_the_recorded_one(case: Path, golden: Golden) -> None:
    """Word for word: what is sent decides what is billed."""
    golden(case / "request.yaml", request_for(case))


def test_there_are_enough_cases() -> None:
    """A folder that was misplaced would otherwise pass unseen."""
    assert len(CASES) >= 12
