"""Keeps the webhook's certificates in their Secret, and the API server believing in them.

Only the leader runs this; all replicas serve with what the Secret holds. The Secret is written
conditionally, so that two who believe to lead never mix their keys.
Fed by watches of the Secret and of the MutatingWebhookConfiguration; writes to both.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from vk_provider.bursting.serving_certificates import Step, next_step
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.webhook_pki import (
    Certificates,
    begin,
    described,
    from_secret,
    renewed,
    to_secret,
    with_new_authority,
    without_old_authorities,
)
from vk_provider.faults import ConflictError, KubeError, KubeNotFoundError
from vk_provider.kube import paths
from vk_provider.kube.watched import Watched
from vk_provider.pods.types import Json
from vk_provider.settings_bursting_webhook import WebhookSettings

logger = logging.getLogger(__name__)

POD_PATH, NAMESPACE_PATH = "/opt-in/pod", "/opt-in/namespace"
PATHS: Mapping[str, str] = {
    "pod.opt-in.vk-provider.dev": POD_PATH,
    "namespace.opt-in.vk-provider.dev": NAMESPACE_PATH,
}
"""The webhooks of the configuration by name, and where each is answered."""
CHECK_SECONDS = 60.0
RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WebhookPlace:
    """Where the webhook is found: the settings, and the namespace that we run in."""

    settings: WebhookSettings
    namespace: str

    @property
    def names(self) -> Sequence[str]:
        """Those of the certificate; the first is how the API server calls a Service."""
        base = f"{self.settings.service}.{self.namespace}"
        found = [f"{base}.svc", base, f"{base}.svc.cluster.local"]
        host = urlsplit(self.settings.url or "").hostname
        return [*found, host] if host else found

    @property
    def secret_path(self) -> str:
        """The Secret of the certificates."""
        return f"{paths.secrets(self.namespace)}/{self.settings.secret}"

    def secret_watch(self, means: ControllerMeans, on_change: Callable[[], None]) -> Watched:
        """A watch of that Secret alone."""
        collection = paths.secrets(self.namespace)
        return Watched(means.client, collection, self.settings.secret, on_change=on_change)


class WebhookCertificates:
    """The leader's part of the webhook."""

    def __init__(self, means: ControllerMeans, place: WebhookPlace) -> None:
        self._means = means
        self._place = place
        self._changed = asyncio.Event()
        self._said = ""
        self._secret = place.secret_watch(means, self._changed.set)
        self._configuration = Watched(
            means.client,
            paths.mutating_webhook_configurations(),
            place.settings.configuration,
            on_change=self._changed.set,
        )

    async def run(self) -> None:
        """Look after both until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watched in (self._secret, self._configuration):
                group.create_task(watched.run())
            await self._secret.answered.wait()
            await self._configuration.answered.wait()
            while True:
                self._changed.clear()
                pause = await self._look()
                try:
                    async with asyncio.timeout(pause):
                        await self._changed.wait()
                except TimeoutError:
                    continue

    async def _look(self) -> float:
        """One step at most, then how long to wait for news of it."""
        if not self._means.may_act():
            return CHECK_SECONDS
        try:
            await self._step()
        except ConflictError:
            return RETRY_SECONDS  # somebody wrote in between: the watch shows what
        except KubeError as fault:
            self._say(f"the webhook's certificates can't be kept: {fault}")
            return RETRY_SECONDS
        return CHECK_SECONDS

    async def _step(self) -> None:
        secret = _only(self._secret)
        configuration = _only(self._configuration)
        held = from_secret(secret)
        facts = None if held is None else described(held)
        believed = held is not None and _believes(configuration, held.bundle)
        now = self._means.clock.now()
        names = self._place.names
        step = next_step(facts, frozenset(names), believed, now)
        if step is not Step.NOTHING:
            held = self._made(step, held, secret is not None)
            await self._write(held, secret)
        if configuration is None:
            name = self._place.settings.configuration
            self._say(
                f"there is no MutatingWebhookConfiguration {name}: apply the component "
                "`webhook` of the manifests, or set webhook.configuration"
            )
        elif held is not None and not _believes(configuration, held.bundle):
            await self._publish(configuration, held)

    def _made(self, step: Step, held: Certificates | None, was_there: bool) -> Certificates:
        now, names = self._means.clock.now(), self._place.names
        if held is None or step is Step.BEGIN:
            if was_there:
                logger.warning("the webhook's Secret can't be used any more: making it anew")
            return begin(names, now)
        logger.info("the webhook's certificates: %s", step)
        if step is Step.ADD_AUTHORITY:
            return with_new_authority(held, now)
        if step is Step.RENEW:
            return renewed(held, names, now)
        return without_old_authorities(held)

    async def _write(self, held: Certificates, secret: Json | None) -> None:
        client, place = self._means.client, self._place
        data = to_secret(held)
        if secret is None:
            metadata = {"name": place.settings.secret, "namespace": place.namespace}
            body = {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/tls",
                "metadata": metadata,
                "data": data,
            }
            await client.create(paths.secrets(place.namespace), body)
            return
        kept = {key: secret[key] for key in ("apiVersion", "kind", "type", "metadata")}
        try:
            await client.replace(place.secret_path, {**kept, "data": data})
        except KubeNotFoundError as fault:
            # Deleted just now: the watch says so, and the next look makes it anew.
            raise ConflictError(str(fault)) from fault

    async def _publish(self, configuration: Json, held: Certificates) -> None:
        """Merged by the webhooks' names; everything else in the configuration is the manifest's."""
        bundle = base64.b64encode(held.bundle).decode()
        url = self._place.settings.url
        webhooks = []
        for webhook in configuration.get("webhooks") or ():
            client_config: dict[str, Any] = {"caBundle": bundle}
            if url is not None and webhook["name"] in PATHS:
                client_config |= {"url": url + PATHS[webhook["name"]], "service": None}
            webhooks.append({"name": webhook["name"], "clientConfig": client_config})
        patch = {"metadata": {"uid": configuration["metadata"]["uid"]}, "webhooks": webhooks}
        path = paths.mutating_webhook_configuration(configuration["metadata"]["name"])
        await self._means.client.patch(path, patch)
        self._said = ""
        logger.info("the API server was given the webhook's authority")

    def _say(self, words: str) -> None:
        """Once per cause."""
        if words != self._said:
            self._said = words
            logger.warning("%s", words)


def _only(watched: Watched) -> Json | None:
    return next(iter(watched.objects()), None)


def _believes(configuration: Json | None, bundle: bytes) -> bool:
    """Whether every webhook of the configuration carries just these authorities."""
    webhooks = (configuration or {}).get("webhooks") or ()
    wanted = base64.b64encode(bundle).decode()
    found = [(one.get("clientConfig") or {}).get("caBundle") for one in webhooks]
    return bool(found) and all(one == wanted for one in found)
