"""Pods and what Modal is asked for them, or every field that is refused.

A case is a folder under ``modal/``: ``pod.yaml`` as the API server has it, ``request.yaml`` with
``{request, notes}`` or ``{refused}``, and, where the case needs more, ``input.yaml`` with
``config`` (the block), ``offer`` (fields of one), ``objects`` (ConfigMaps, Secrets).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from vk_provider_modal.config import parse_config
from vk_provider_modal.offers import known_offers
from vk_provider_modal.translate import translate

from tests.golden.conftest import Golden
from tests.golden.translations import cases, read, rendered, resolved_pod
from vk_provider.pods.types import FieldNote, Offer

CASES = cases("modal")
DEFAULT_CONFIG = {
    "tokenId": {"env": "MODAL_TOKEN_ID"},
    "tokenSecret": {"env": "MODAL_TOKEN_SECRET"},
    "gpuTypes": ["L40S", "H100"],
}


def request_for(case: Path) -> dict[str, Any]:
    """What the translation makes of a case."""
    given, pod = read(case / "input.yaml"), resolved_pod(case)
    config = parse_config({**DEFAULT_CONFIG, **given.get("config", {})}, "config")
    offer = Offer(**given["offer"]) if "offer" in given else known_offers(pod.gpu_count, config)[0]

    def translated() -> tuple[dict[str, Any], Sequence[FieldNote]]:
        found = translate(pod, offer, config)
        return dict(found.request), found.notes

    return rendered("request", translated)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_request_for_a_pod_is_the_recorded_one(case: Path, golden: Golden) -> None:
    """Word for word: what is asked for decides what is billed."""
    golden(case / "request.yaml", request_for(case))


def test_there_are_enough_cases() -> None:
    """A folder that was misplaced would otherwise pass unseen."""
    assert len(CASES) >= 12
