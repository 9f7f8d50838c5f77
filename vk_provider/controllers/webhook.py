"""The HTTPS server that prepares pods which may burst; every replica runs one.

It decides nothing and writes nothing: an AdmissionReview in, the answer of
:func:`vk_provider.bursting.opt_in.review` out. If nobody answers, the API server lets the pod in as
it is, and it stays at home.
Fed by the API server, and by a watch of the Secret with its certificate.
"""

from __future__ import annotations

import asyncio
import logging

import orjson
from aiohttp import web

from vk_provider.bursting.opt_in import OptInRules, review
from vk_provider.bursting.picture import Selection
from vk_provider.controllers.means import ControllerMeans
from vk_provider.controllers.webhook_certificates import (
    NAMESPACE_PATH,
    POD_PATH,
    WebhookPlace,
)
from vk_provider.controllers.webhook_pki import from_secret
from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.server.certificate import ServingPair
from vk_provider.server.limits import Endpoint, Limits, bounded
from vk_provider.server.listener import Listener
from vk_provider.server.tls import ServingNames, ServingTLS
from vk_provider.settings_bursting_webhook import WebhookSettings

logger = logging.getLogger(__name__)

_LIMITS = Limits(connections=256, oldest_goes=True, requests=64, body_bytes=4 * 1024 * 1024)
_REFRESH_SECONDS = 300.0


def rules_of(settings: WebhookSettings, selection: Selection) -> OptInRules:
    """The settings as the decision takes them."""
    return OptInRules(
        home=selection.home,
        training_classes=selection.priority_classes,
        narrow_to=settings.narrow_to,
        outage_seconds=settings.outage_seconds,
        mark_evictable=settings.mark_evictable,
    )


class OptInWebhook:
    """One replica's webhook. ``port`` is known once it listens."""

    def __init__(self, means: ControllerMeans, place: WebhookPlace, rules: OptInRules) -> None:
        self.port = 0
        self.listening = asyncio.Event()
        self._means = means
        self._place = place
        self._rules = rules
        self._pair: ServingPair | None = None
        self._changed = asyncio.Event()
        self._secret = place.secret_watch(means, self._changed.set)
        names = ServingNames(place.settings.service, lambda: place.names)
        self._tls = ServingTLS(names, signed=lambda: self._pair)

    async def run(self) -> None:
        """Serve until cancelled. Raises ConfigError if the port is not to be had."""
        settings = self._place.settings
        listener = Listener(
            self._application(), settings.address, settings.port, _LIMITS, self._tls.context
        )
        try:
            self.port = await listener.start()
        except OSError as error:
            message = f"can't listen on {settings.port}: {error.strerror or error}"
            raise ConfigError([FieldProblem("spec.webhook.port", message)]) from error
        self.listening.set()
        logger.info("the admission webhook listens on port %d", self.port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._secret.run())
                await self._follow()
        finally:
            await listener.close()

    async def _follow(self) -> None:
        while True:
            await self._refresh()
            try:
                async with asyncio.timeout(_REFRESH_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()

    async def _refresh(self) -> None:
        found = from_secret(next(iter(self._secret.objects()), None))
        if found is not None:
            self._pair = found.serving
        if await asyncio.to_thread(self._tls.refresh):
            logger.info("the admission webhook has a new certificate")

    def _application(self) -> web.Application:
        application = web.Application(
            middlewares=[bounded(_LIMITS)], client_max_size=_LIMITS.body_bytes
        )
        application.router.add_post(POD_PATH, self._endpoint(by_namespace=False))
        application.router.add_post(NAMESPACE_PATH, self._endpoint(by_namespace=True))
        return application

    def _endpoint(self, *, by_namespace: bool) -> Endpoint:
        counted = self._means.metrics.bursting.webhook_requests

        async def serve(request: web.Request) -> web.StreamResponse:
            try:
                question = orjson.loads(await request.read())
                if not isinstance(question, dict):
                    raise ValueError("found no object, allowed: an AdmissionReview")
                answer = review(question, self._rules, by_namespace=by_namespace)
            except ValueError as error:
                counted.labels("garbled").inc()
                logger.debug("the webhook was asked nonsense", exc_info=error)
                return web.Response(status=400, text=str(error))
            counted.labels(_outcome(answer["response"])).inc()
            return web.Response(body=orjson.dumps(answer), content_type="application/json")

        return serve


def _outcome(response: dict[str, object]) -> str:
    if not response["allowed"]:
        return "refused"
    return "patched" if "patch" in response else "unchanged"
