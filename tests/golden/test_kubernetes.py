"""Pods and what is created in another cluster for them, or every field that is refused.

A case is a folder under ``kubernetes/``: ``pod.yaml`` as the API server has it, ``created.yaml``
with ``{items, notes}`` or ``{refused}``, and, where the case needs more, ``input.yaml`` with
``config`` (the block) and ``objects`` (ConfigMaps, Secrets).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from vk_provider_kubernetes.config import parse_config
from vk_provider_kubernetes.explain import explain

from tests.golden.conftest import Golden
from tests.golden.translations import cases, read, rendered, resolved_pod
from vk_provider.pods.types import FieldNote

CASES = cases("kubernetes")
DEFAULT_CONFIG = {"kubeconfig": "/etc/other"}


def created_for(case: Path) -> dict[str, Any]:
    """What the translation makes of a case."""
    given, pod = read(case / "input.yaml"), resolved_pod(case, "10.0.0.7")
    config = parse_config({**DEFAULT_CONFIG, **given.get("config", {})}, "config", "burst", "other")

    def explained() -> tuple[list[Any], Sequence[FieldNote]]:
        found = explain(pod, config)
        return found.request["items"], found.notes

    return rendered("items", explained)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_created_for_a_pod_is_what_is_recorded(case: Path, golden: Golden) -> None:
    """Word for word, but for what is masked."""
    golden(case / "created.yaml", created_for(case))


def test_there_are_enough_cases() -> None:
    """A folder that was misplaced would otherwise pass unseen."""
    assert len(CASES) >= 10
