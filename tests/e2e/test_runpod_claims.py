"""A claim of the home cluster as a network volume of RunPod: scheduled, read with the shipped
right, mounted. The account is RunPod's simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from vk_provider_runpod.simulator import Options, running
from vk_provider_runpod.simulator.model import Volume

from tests.e2e.node_under_test import NodeUnderTest
from tests.e2e.workloads import TOLERATE_ALL, Workloads
from tests.rig import identity
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

RIGHTS = identity.DEPLOY / "components" / "volume-claims" / "rights.yaml"


def objects(namespace: str) -> list[dict[str, Any]]:
    """A volume that is ours, one that is not, and a claim for each."""
    made = []
    sources: dict[str, dict[str, Any]] = {
        "models": {"csi": {"driver": "runpod.vk-provider.dev", "volumeHandle": "vol-1"}},
        "other": {"nfs": {"server": "192.0.2.1", "path": "/"}},
    }
    for name, source in sources.items():
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        volume = f"{name}-{namespace}"
        spec = {**common, **source, "capacity": {"storage": "1Gi"}}
        metadata = {"name": volume}
        made.append(
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}
        )
        claim = {**common, "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}}
        place = {"name": name, "namespace": namespace}
        made.append(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": place, "spec": claim}
        )
    return made


def pod(claim: str, node: str) -> dict[str, Any]:
    """A pod that the scheduler brings to the node, with a claim."""
    return {
        "metadata": {},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": TOLERATE_ALL,
            "restartPolicy": "Always",
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/app:1",
                    "volumeMounts": [{"name": "data", "mountPath": "/models"}],
                }
            ],
        },
    }


async def test_a_claim_is_mounted_where_its_volume_is(
    control_plane: ControlPlane, workloads: Workloads, namespace: str, tmp_path: Path
) -> None:
    """And one of home's own storage is refused by its path."""
    (tmp_path / "key").write_text("rpa_end_to_end_key")
    await control_plane.apply(RIGHTS.read_text())
    await control_plane.apply(objects(namespace))
    async with running(Options(pull_seconds=0)) as account:
        account.state.model.volumes["vol-1"] = Volume("vol-1", "models", 100, "US-KS-2")
        config = {"apiKey": {"file": str(tmp_path / "key")}, "baseUrl": account.url}
        backend = {"name": "cloud", "provider": "runpod", "config": config}
        async with NodeUnderTest(control_plane, "runpod-claims", {"backends": [backend]}) as node:
            await workloads.create_pod("good", pod("models", node.name))
            await workloads.create_pod("bad", pod("other", node.name))

            await workloads.pod_in("good", "Running", seconds=60)
            failed = await workloads.pod_in("bad", "Failed", seconds=60)

            (body,) = account.state.bodies
            assert body["mounts"] == {"network": [{"volumeId": "vol-1", "path": "/models"}]}
            assert body["dataCenterIds"] == ["US-KS-2"]
            assert failed["status"]["reason"] == "Rejected"
            assert "spec.volumes[0].persistentVolumeClaim" in failed["status"]["message"]
            assert "csi.driver runpod.vk-provider.dev" in failed["status"]["message"]
            await workloads.delete("pods", "good", grace=0)

            async def gone() -> bool:
                return not account.state.model.ledger.open_intervals()

            await eventually(gone, "the end of the bill", seconds=60)
