"""The admission webhook on a real API server: what it makes of pods, and its certificates."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from cryptography import x509

from tests.e2e.controllers import ShiftedClock, install, means_of
from tests.e2e.node_under_test import USER, NodeUnderTest
from tests.e2e.workloads import Workloads, deployment
from tests.rig import audit
from tests.rig.access import ApiError
from tests.rig.control_plane import ControlPlane
from tests.rig.identity import NAMESPACE
from tests.rig.polling import eventually
from tests.support.eventually import running
from vk_provider.bursting.opt_in import OptInRules
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.webhook import OptInWebhook
from vk_provider.controllers.webhook_certificates import WebhookCertificates, WebhookPlace
from vk_provider.settings_bursting_webhook import WebhookSettings

pytestmark = pytest.mark.asyncio(loop_scope="session")

KIND = "MutatingWebhookConfiguration"
CONFIGURATION = (
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/vk-provider-opt-in"
)
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/vk-provider-webhook"
BURST = {"vk-provider.dev/burst": "true"}
EVERYTHING = [{"operator": "Exists"}]


class Stage:
    """A control plane with the webhook's manifests, and whatever part of it a test starts."""

    def __init__(self, bed: ControlPlane, kubeconfig: Path) -> None:
        self.bed = bed
        self.kubeconfig = kubeconfig
        self.port = bed.free_port()
        url = f"https://127.0.0.1:{self.port}"
        settings = WebhookSettings(True, "127.0.0.1", self.port, url=url)
        self.place = WebhookPlace(settings, NAMESPACE)

    @asynccontextmanager
    async def replica(self, rules: OptInRules | None = None) -> AsyncIterator[ControllerMeans]:
        """One that serves."""
        async with means_of(self.bed, self.kubeconfig) as means:
            webhook = OptInWebhook(means, self.place, rules or OptInRules())
            async with running(webhook.run()):
                await webhook.listening.wait()
                yield means

    @asynccontextmanager
    async def leader(self, clock: ShiftedClock) -> AsyncIterator[None]:
        """One that keeps the certificates."""
        async with (
            means_of(self.bed, self.kubeconfig, clock) as means,
            running(WebhookCertificates(means, self.place).run()),
        ):
            yield

    async def bundle(self) -> list[bytes]:
        """The authorities that the API server believes, of each webhook."""
        configuration = await self.bed.get_json(CONFIGURATION)
        texts = [one["clientConfig"].get("caBundle", "") for one in configuration["webhooks"]]
        return [base64.b64decode(text) for text in texts]

    async def believed(self, count: int) -> bytes:
        """Wait until every webhook believes so many authorities, those of the Secret."""

        async def probe() -> bytes | None:
            try:
                secret = await self.bed.get_json(SECRET)
            except ApiError:
                return None
            wanted = base64.b64decode(secret["data"]["ca.crt"])
            found = await self.bundle()
            number = len(x509.load_pem_x509_certificates(wanted))
            return wanted if number == count and found == [wanted, wanted] else None

        return await eventually(probe, f"{count} authorities believed", seconds=20)

    async def answers(self, workloads: Workloads) -> None:
        """Wait until a pod is prepared: the API server takes a moment to see its configuration."""

        async def probe() -> bool:
            return is_prepared(await admitted(workloads, pod(BURST)))

        await eventually(probe, "the webhook answers", seconds=20, interval=0.2)


@pytest_asyncio.fixture(loop_scope="session")
async def stage(control_plane: ControlPlane) -> AsyncIterator[Stage]:
    """The manifests alone; nothing of a former test is left."""
    kubeconfig = await install(control_plane, ["webhook"], [KIND])
    yield Stage(control_plane, kubeconfig)
    for path in (CONFIGURATION, SECRET):
        await control_plane.request_json("DELETE", path)


@pytest_asyncio.fixture(loop_scope="session")
async def serving(stage: Stage, workloads: Workloads) -> AsyncIterator[Stage]:
    """All of it runs, and answers."""
    async with stage.leader(ShiftedClock()), stage.replica():
        await stage.answers(workloads)
        yield stage


def pod(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod that stays where it is."""
    container = {"name": "main", "image": "registry.example/app:1"}
    metadata = {"generateName": "p-", "labels": labels or {}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


async def admitted(workloads: Workloads, thing: dict[str, Any]) -> dict[str, Any]:
    """The pod as the API server would store it."""
    path = f"{workloads.path('pods')}?dryRun=All"
    found: dict[str, Any] = await workloads.bed.request_json("POST", path, thing)
    return found


def is_prepared(thing: dict[str, Any]) -> bool:
    """Whether it may go outside."""
    tolerations: Sequence[dict[str, Any]] = thing["spec"]["tolerations"]
    return any(one.get("key") == "virtual-kubelet.io/provider" for one in tolerations)


async def test_a_deployments_pods_are_prepared(serving: Stage, workloads: Workloads) -> None:
    """They may go outside, prefer home, and outlast an outage of ours."""
    template = {"metadata": {"labels": dict(BURST)}, "spec": pod()["spec"]}
    await workloads.create("deployments", deployment("chat", 2, template))

    async def made() -> Any:
        found = await workloads.pods()
        return found if len(found) == 2 else None

    for one in await eventually(made, "two pods"):
        tolerations = {each["key"]: each for each in one["spec"]["tolerations"]}
        assert tolerations["vk-provider.dev/gpu-health"]["value"] == "training-unfit"
        assert tolerations["node.kubernetes.io/unreachable"]["tolerationSeconds"] == 900
        assert tolerations["node.kubernetes.io/not-ready"]["tolerationSeconds"] == 900
        preferred = one["spec"]["affinity"]["nodeAffinity"]
        assert preferred["preferredDuringSchedulingIgnoredDuringExecution"][0]["weight"] == 100


async def test_a_namespace_opts_its_pods_in(serving: Stage, workloads: Workloads) -> None:
    """Which then carry the label; one that says no is left alone."""
    path = f"/api/v1/namespaces/{workloads.namespace}"
    await workloads.patch(path, {"metadata": {"labels": BURST}})

    async def opted_in() -> dict[str, Any] | None:
        found = await admitted(workloads, pod())
        return found if is_prepared(found) else None

    found = await eventually(opted_in, "the namespace is seen", seconds=10)
    assert found["metadata"]["labels"] == BURST
    refusing = await admitted(workloads, pod({"vk-provider.dev/burst": "false"}))
    assert not is_prepared(refusing)


async def test_others_are_not_even_asked_about(serving: Stage, workloads: Workloads) -> None:
    """A pod without the label, and all of kube-system."""
    assert not is_prepared(await admitted(workloads, pod()))
    path = "/api/v1/namespaces/kube-system/pods?dryRun=All"
    system = await workloads.bed.request_json("POST", path, pod(BURST))
    assert not is_prepared(system)


async def test_a_hole_in_the_gate_is_refused_in_words(serving: Stage, workloads: Workloads) -> None:
    """To whoever creates the pod, and in an Event of the ReplicaSet."""
    with pytest.raises(ApiError, match=r"spec\.tolerations\[0\].*tolerates every taint"):
        await admitted(workloads, pod(BURST, tolerations=EVERYTHING))
    spec = pod(tolerations=EVERYTHING)["spec"]
    template = {"metadata": {"labels": dict(BURST)}, "spec": spec}
    await workloads.create("deployments", deployment("holed", 1, template))

    async def told() -> bool:
        events = (await workloads.bed.get_json(workloads.path("events")))["items"]
        return any("closed gate" in each["message"] for each in events)

    await eventually(told, "the ReplicaSet says why", seconds=20)


async def test_a_webhook_that_is_gone_holds_nobody_up(stage: Stage, workloads: Workloads) -> None:
    """Its pods stay at home until it is back."""
    async with stage.leader(ShiftedClock()):
        async with stage.replica():
            await stage.answers(workloads)
        assert not is_prepared(await admitted(workloads, pod(BURST)))
        async with stage.replica():
            await stage.answers(workloads)


async def test_certificates_are_rotated_while_it_serves(stage: Stage, workloads: Workloads) -> None:
    """A new authority is believed before it signs, and the old one is forgotten at last."""
    clock = ShiftedClock(timedelta(days=-250))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(stage.replica())
        async with stage.leader(clock):
            old = await stage.believed(1)
        clock.shift = timedelta()
        async with stage.leader(clock):
            both = await stage.believed(2)
            await stage.answers(workloads)
        clock.shift = timedelta(hours=2)
        async with stage.leader(clock):
            new = await stage.believed(1)
            await stage.answers(workloads)

    assert both == new + old


async def test_what_somebody_broke_is_mended(serving: Stage, workloads: Workloads) -> None:
    """The Secret deleted, and the manifest applied anew without an authority."""
    await workloads.bed.request_json("DELETE", SECRET)
    await workloads.bed.request_json("DELETE", CONFIGURATION)
    await install(workloads.bed, ["webhook"], [KIND])

    await serving.believed(1)
    await serving.answers(workloads)


async def test_the_command_serves_it_where_it_is_enabled(
    stage: Stage, workloads: Workloads
) -> None:
    """The bursting side of `vk-provider run`: certificates, server, and the count of pods."""
    block = {
        "enabled": True,
        "address": "127.0.0.1",
        "port": stage.port,
        "url": f"https://127.0.0.1:{stage.port}",
        "namespace": NAMESPACE,
    }
    rules = {
        "apiVersion": "vk-provider.dev/v1alpha1",
        "kind": "Bursting",
        "spec": {"webhook": block, "leaderElection": {"namespace": NAMESPACE}},
    }
    async with NodeUnderTest(stage.bed, "hooked", beside=[rules]) as node:
        await stage.answers(workloads)
        assert await node.metric("vk_provider_webhook_requests_total", outcome="patched") > 0
        assert await node.stop() == 0


async def test_its_rights_are_enough_and_none_is_for_nothing(
    stage: Stage, workloads: Workloads
) -> None:
    """In a life of it: made, rotated, mended. A list is asked of older API servers only."""
    mark = stage.bed.audit_mark()
    clock = ShiftedClock(timedelta(days=-250))
    async with stage.replica():
        async with stage.leader(clock):
            await stage.believed(1)
        clock.shift = timedelta()
        async with stage.leader(clock):
            await stage.believed(2)
            await stage.answers(workloads)
    events = await stage.bed.settled_audit_events(mark)

    assert not audit.forbidden(events, USER), audit.describe(audit.forbidden(events, USER))
    used = {(event["verb"], audit.resource_of(event)) for event in audit.select(events, user=USER)}
    configurations = "mutatingwebhookconfigurations"
    assert used >= {
        ("watch", "secrets"),
        ("create", "secrets"),
        ("update", "secrets"),
        ("watch", configurations),
        ("patch", configurations),
    }


async def test_garbage_is_answered_with_a_sentence(serving: Stage) -> None:
    """Whoever sends it."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"https://127.0.0.1:{serving.port}/opt-in/pod", data="[]", ssl=False
        ) as response,
    ):
        assert response.status == 400
        assert await response.text() == "found no object, allowed: an AdmissionReview"
