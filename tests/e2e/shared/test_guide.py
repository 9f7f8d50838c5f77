"""The guide, followed: its manifests are taken by a real API server and a real Kueue."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from tests.e2e.shared.cluster import BUILT, SharedCluster
from tests.rig import identity
from tests.rig.kueue import create
from vk_provider.settings_file import load_settings

pytestmark = pytest.mark.asyncio(loop_scope="session")
PROGRAMS = BUILT

GUIDE = Path(__file__).parents[3] / "docs" / "bursting.md"


def file_of(name: str) -> str:
    """The code block that begins with this file's name."""
    found = re.search(
        rf"^```yaml\n(# {re.escape(name)}.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert found, name
    return found[1]


@pytest_asyncio.fixture(loop_scope="session")
async def followed(cluster: SharedCluster) -> AsyncIterator[SharedCluster]:
    """The queues of the guide."""
    objects = list(yaml.safe_load_all(file_of("queues.yaml")))
    await create(cluster.bed, [one for one in objects if "kueue" in one["apiVersion"]])
    yield cluster
    api = "/apis/kueue.x-k8s.io/v1beta2"
    for path in (
        f"{api}/namespaces/default/localqueues/train",
        f"{api}/clusterqueues/train",
        f"{api}/resourceflavors/home",
    ):
        await cluster.bed.request_json("DELETE", path)


@pytest.mark.parametrize("name", ["queues.yaml", "chat.yaml", "train.yaml"])
async def test_a_manifest_is_taken(followed: SharedCluster, name: str) -> None:
    """By everything that admits it."""
    said = await followed.bed.kubectl(
        "apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-",
        input=file_of(name),
    )  # fmt: skip
    assert said.count("serverside-applied") == len(list(yaml.safe_load_all(file_of(name))))


async def test_the_configuration_is_valid(tmp_path: Path) -> None:
    """Both documents."""
    file = tmp_path / "config.yaml"
    file.write_text(file_of("burst/config.yaml"))
    settings = load_settings([str(file)])

    assert [node.name for node in settings.nodes] == ["burst"]
    assert settings.bursting is not None
    assert settings.bursting.webhook.enabled


async def test_the_overlay_can_be_built(cluster: SharedCluster, tmp_path: Path) -> None:
    """With the checkout where it is here."""
    text = file_of("burst/kustomization.yaml").replace("../vk-provider", _checkout(tmp_path))
    (tmp_path / "kustomization.yaml").write_text(text)
    (tmp_path / "config.yaml").write_text(file_of("burst/config.yaml"))
    objects = await identity.rendered(cluster.bed, tmp_path)

    kinds = {one["kind"] for one in objects}
    assert kinds >= {"MutatingWebhookConfiguration", "Service", "Deployment"}
    # Older API servers, such as kind's usual one, do not know it.
    assert "MutatingAdmissionPolicy" not in kinds
    (configured,) = [one for one in objects if one["kind"] == "ConfigMap"]
    assert "kind: Bursting" in configured["data"]["config.yaml"]
    (deployed,) = [one for one in objects if one["kind"] == "Deployment"]
    (container,) = deployed["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "REGISTRY/vk-provider:0.1.0"
    assert {"name": "webhook", "containerPort": 9443} in container["ports"]


def _checkout(start: Path) -> str:
    return os.path.relpath(identity.DEPLOY.parents[1], start)


async def test_the_rules_and_the_dashboard_are_taken(cluster: SharedCluster) -> None:
    """As two ConfigMaps under the labels that sidecars look for."""
    folder = str(identity.DEPLOY.parent / "monitoring")
    said = await cluster.bed.kubectl(
        "apply", "--dry-run=server", "--server-side", "-k", folder, "-o", "name"
    )
    assert said.split() == ["configmap/vk-provider-dashboard", "configmap/vk-provider-rules"]
