"""The real Kueue on a bed: an ordinary process, its webhooks by URL with certificates of the bed.

async with kueue(bed) as queue:
    await bed.apply(queue_of("train", gpus=16, node_labels={"pool": "home"}))
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shlex
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.rig import builds
from tests.rig.access import ADMIN_GROUP, KubectlError
from tests.rig.control_plane import ControlPlane
from tests.rig.pki import Pair
from tests.rig.polling import answers, eventually
from tests.rig.processes import ProcessError

NAME = "kueue"
NAMESPACE = "kueue-system"
_START_SECONDS = 60.0
# Read by the manager whatever its configuration says, as long as certificates are not its own.
_METRICS_CERTIFICATES = "kueue/metrics/certs"
_CONVERTED = {"localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters"}
# Those of other integrations would make every pod wait for a manager that has nothing to say.
_WEBHOOK_GROUPS = {"kueue.x-k8s.io", "batch"}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Kueue:
    """Where a running manager answers."""

    metrics_url: str
    """HTTPS with the bed's CA; wants a bearer token that may `get` the path `/metrics`."""


@asynccontextmanager
async def kueue(bed: ControlPlane, *, topology_aware: bool = False) -> AsyncIterator[Kueue]:
    """Install its CRDs, run the manager, register its webhooks for Jobs and its own objects."""
    program = await asyncio.to_thread(builds.binary, NAME)
    webhook, health, metrics = (bed.free_port() for _ in range(3))
    server = f"https://127.0.0.1:{webhook}"
    pair = bed.authority.issue("kueue-webhook", "kueue-webhook", hosts=["127.0.0.1", "localhost"])
    bundle = base64.b64encode(bed.ca_file.read_bytes()).decode()
    components = program.parent / "config" / "components"
    crds = await asyncio.to_thread(lambda: list(_definitions(components, server, bundle)))
    await bed.create_namespace(NAMESPACE)
    await bed.apply(crds)
    names = {crd["metadata"]["name"] for crd in crds}
    await eventually(lambda: _are_served(bed, names), "Kueue's kinds served")
    configuration = _configuration(_folder_of(bed, pair), (webhook, health, metrics))
    configuration["featureGates"]["TopologyAwareScheduling"] = topology_aware
    await _start(bed, program, configuration, pair)
    await _until_ready(bed, f"http://127.0.0.1:{health}/readyz")
    await bed.apply(list(_webhooks(components, server, bundle)))
    try:
        yield Kueue(f"https://127.0.0.1:{metrics}/metrics")
    finally:
        await bed.stop(NAME)


async def create(bed: ControlPlane, objects: list[dict[str, Any]]) -> None:
    """Apply Kueue's objects; tries again while the manager's webhooks are just coming up."""

    async def applied() -> bool:
        try:
            await bed.apply(objects)
        except KubectlError as error:
            if "failed calling webhook" in str(error) or "conversion webhook" in str(error):
                return False
            raise
        return True

    await eventually(applied, "Kueue takes objects", seconds=30, interval=0.3)


def queue_of(
    name: str,
    resources: Mapping[str, str],
    node_labels: Mapping[str, str],
    namespace: str = "default",
    **spec: Any,
) -> list[dict[str, Any]]:
    """Return a ResourceFlavor, a ClusterQueue with its quota and a LocalQueue, all of one name."""
    quota = [{"name": each, "nominalQuota": amount} for each, amount in resources.items()]
    group = {
        "coveredResources": list(resources),
        "flavors": [{"name": name, "resources": quota}],
    }
    queue = {"namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO"} | spec
    return [
        _object("ResourceFlavor", {"name": name}, {"nodeLabels": dict(node_labels)}),
        _object("ClusterQueue", {"name": name}, {**queue, "resourceGroups": [group]}),
        _object("LocalQueue", {"name": name, "namespace": namespace}, {"clusterQueue": name}),
    ]


def _object(kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    version = "kueue.x-k8s.io/v1beta2"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _definitions(components: Path, server: str, bundle: str) -> Iterator[dict[str, Any]]:
    """Its CRDs; those that were stored in an older version are converted by the manager."""
    client = {"url": f"{server}/convert", "caBundle": bundle}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    for file in sorted((components / "crd" / "bases").glob("*.yaml")):
        for crd in yaml.load_all(file.read_text(), Loader=_LOADER):
            if crd["spec"]["names"]["plural"] in _CONVERTED:
                crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
            yield crd


def _webhooks(components: Path, server: str, bundle: str) -> Iterator[dict[str, Any]]:
    """Its admission webhooks of Jobs and of its own objects, at the process's address."""
    text = (components / "webhook" / "manifests.yaml").read_text()
    for configuration in yaml.load_all(text, Loader=_LOADER):
        configuration["metadata"]["name"] = f"kueue-{configuration['metadata']['name']}"
        kept = []
        for webhook in configuration["webhooks"]:
            groups = {group for rule in webhook["rules"] for group in rule["apiGroups"]}
            if groups & _WEBHOOK_GROUPS:
                path = webhook["clientConfig"]["service"]["path"]
                webhook["clientConfig"] = {"url": server + path, "caBundle": bundle}
                kept.append(webhook)
        yield configuration | {"webhooks": kept}


async def _are_served(bed: ControlPlane, names: set[str]) -> bool:
    """Whether all are Established: the manager ends at once where a kind is missing."""
    found = await bed.get_json("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    served = {
        crd["metadata"]["name"]
        for crd in found["items"]
        for condition in (crd.get("status") or {}).get("conditions") or ()
        if (condition["type"], condition["status"]) == ("Established", "True")
    }
    return names <= served


def _folder_of(bed: ControlPlane, pair: Pair) -> Path:
    folder = bed.folder / "kueue-webhook"
    folder.mkdir()
    _as_secret(pair, folder)
    return folder


def _as_secret(pair: Pair, folder: Path) -> None:
    shutil.copy(pair.certificate, folder / "tls.crt")
    shutil.copy(pair.key, folder / "tls.key")


def _configuration(certificates: Path, ports: tuple[int, int, int]) -> dict[str, Any]:
    webhook, health, metrics = ports
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": f"127.0.0.1:{metrics}", "enableClusterQueueResources": True},
        "webhook": {"host": "127.0.0.1", "port": webhook, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "manageJobsWithoutQueueName": False,
        "clientConnection": {"qps": 200, "burst": 400},
        "integrations": {"frameworks": ["batch/job"]},
        "featureGates": {"VisibilityOnDemand": False},
        "waitForPodsReady": {"timeout": "2m", "recoveryTimeout": "2m", "blockAdmission": False},
    }


async def _start(
    bed: ControlPlane, program: Path, configuration: Mapping[str, Any], pair: Pair
) -> None:
    """Start the manager in a mount namespace whose /etc holds what it reads, and little else."""
    etc = bed.folder / "kueue-etc"
    (etc / _METRICS_CERTIFICATES).mkdir(parents=True)
    _as_secret(pair, etc / _METRICS_CERTIFICATES)
    file = bed.folder / "kueue.json"  # JSON is YAML
    file.write_text(json.dumps(configuration))
    kubeconfig = bed.kubeconfig_for_user("kueue", [ADMIN_GROUP])
    run = shlex.join([str(program), f"--config={file}", "--zap-log-level=1"])
    script = f"mount --bind {shlex.quote(str(etc))} /etc && exec {run}"
    # Without root a user namespace gives the right to mount in it.
    flags = ["-m"] if os.geteuid() == 0 else ["-rm"]
    environment = os.environ | {"KUBECONFIG": str(kubeconfig)}
    await bed.start(NAME, ["unshare", *flags, "sh", "-c", script], environment)


async def _until_ready(bed: ControlPlane, url: str) -> None:
    ended = asyncio.create_task(bed.wait(NAME))
    ready = asyncio.create_task(
        eventually(lambda: answers(url), "Kueue ready", seconds=_START_SECONDS)
    )
    try:
        await asyncio.wait({ended, ready}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            raise ProcessError(f"{NAME} ended with {ended.result()}\n{bed.log_tail(NAME)}")
        await ready
    finally:
        for task in (ended, ready):
            task.cancel()
        await asyncio.gather(ended, ready, return_exceptions=True)
