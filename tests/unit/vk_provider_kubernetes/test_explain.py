"""What a person sees of a translation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vk_provider_kubernetes.config import KubernetesConfig
from vk_provider_kubernetes.explain import explain

from vk_provider.testing.builders import make_container, make_resolved_pod


def test_everything_that_would_be_made_is_shown_without_secrets(
    config: KubernetesConfig, objects: Mapping[Any, Any]
) -> None:
    """Neither plain nor encoded."""
    sources = [{"secretRef": {"name": "login"}}, {"configMapRef": {"name": "conf"}}]
    container = make_container(envFrom=sources, args=["--password=secret-word"])

    found = explain(make_resolved_pod(objects=objects, containers=[container]), config)

    kinds = [item["kind"] for item in found.request["items"]]
    assert kinds == ["Pod", "ConfigMap", "Secret"]
    assert found.request["items"][2]["data"] == {"username": "***", "password": "***"}
    assert "fast" in repr(found)
    assert not {word for word in ("secret-word", "c2VjcmV0") if word in repr(found)}


def test_notes_are_the_translations() -> None:
    """For ``vk-provider explain``."""
    found = explain(make_resolved_pod(nodeSelector={"a": "b"}), KubernetesConfig("vk"))

    assert [note.path for note in found.notes] == ["spec.nodeSelector"]
