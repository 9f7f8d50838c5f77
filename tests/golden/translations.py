"""A case of a provider's translation: a folder with a pod, and what is made of it.

``pod.yaml`` is as the API server has it; ``input.yaml``, where the case needs more, holds
``objects`` (ConfigMaps, Secrets) and what the provider's own test says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from vk_provider.faults import UnsupportedFieldsError
from vk_provider.pods.hints import hints
from vk_provider.pods.references import ObjectKey
from vk_provider.pods.resolve import Missing, ResolveInput, resolve
from vk_provider.pods.types import FieldNote, ResolvedPod

CLUSTER = "8f2e6b9a-0000-4000-8000-000000000001"


def cases(provider: str) -> list[Path]:
    """The folders of a provider's cases."""
    return sorted(path.parent for path in Path(__file__).parent.glob(f"{provider}/*/pod.yaml"))


def read(path: Path) -> dict[str, Any]:
    """A YAML mapping, empty where there is no file."""
    found: dict[str, Any] = yaml.safe_load(path.read_text()) if path.exists() else {}
    return found


def resolved_pod(case: Path, host_ip: str | None = None) -> ResolvedPod:
    """The pod with everything it refers to, as the core hands it to the provider."""
    pod, objects = read(case / "pod.yaml"), read(case / "input.yaml").get("objects", [])
    known: dict[ObjectKey, Any] = {
        ObjectKey(each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]): each
        for each in objects
    }
    resolved = resolve(pod, known, ResolveInput(CLUSTER, "burst", host_ip, hints=hints(pod)[0]))
    assert not isinstance(resolved, Missing), resolved
    return resolved


def rendered(name: str, translate: Callable[[], tuple[Any, Sequence[FieldNote]]]) -> dict[str, Any]:
    """What ``translate`` gives under its ``name`` with the notes, or every field it refuses."""
    try:
        found, notes = translate()
    except UnsupportedFieldsError as error:
        return {"refused": [asdict(problem) for problem in error.problems]}
    return {name: found, "notes": [asdict(note) for note in notes]}
