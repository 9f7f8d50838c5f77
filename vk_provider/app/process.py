"""The whole program: all nodes of one process, its signals, its plain port.

A node that fails ends the process with its message: Kubernetes starts it again, and everything is
rebuilt from two lists. Fed by ``cli``.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence
from pathlib import Path

from vk_provider import __version__
from vk_provider.app.bursting import Bursting
from vk_provider.app.collector import relax
from vk_provider.app.virtual_node import VirtualNode
from vk_provider.faults import ConfigError, VkProviderError
from vk_provider.kube.credentials import load_credentials
from vk_provider.metrics import Metrics
from vk_provider.server.checks import Check
from vk_provider.server.plain import plain_application, plain_listener
from vk_provider.settings_file import Settings

logger = logging.getLogger(__name__)

_STOPS = (signal.SIGINT, signal.SIGTERM)


async def run(settings: Settings, kubeconfig: str | None = None, context: str | None = None) -> int:
    """Run until SIGINT or SIGTERM; the exit code. Raises ConfigError, VkProviderError."""
    relax()
    metrics = Metrics()
    metrics.observe_process()
    credentials = await load_credentials(Path(kubeconfig) if kubeconfig else None, context)
    nodes = settings.nodes
    running = [VirtualNode(node, credentials, credentials.namespace, metrics) for node in nodes]
    bursting = None
    if settings.bursting is not None:
        own = credentials.namespace
        bursting = Bursting(settings.bursting, credentials, own, metrics)
    for doubt in settings.doubts:
        logger.warning("%s", doubt)
    logger.info("vk-provider %s: nodes %s", __version__, ", ".join(n.name for n in nodes))
    stop = _stop_on_signals()
    ready: dict[str, Check] = {node.settings.name: node.unready for node in running}
    if bursting is not None:
        ready["bursting"] = bursting.unready
    alive: dict[str, Check] = {node.settings.name: node.stuck for node in running}
    application = plain_application(metrics.registry, alive, ready)
    plain = plain_listener(application, "", nodes[0].server.plain_port)
    try:
        await plain.start()
    except OSError as error:
        port = nodes[0].server.plain_port
        raise ConfigError([f"spec.server.plainPort: can't listen on {port}: {error}"]) from error
    try:
        await _run_all(running, bursting, stop)
    finally:
        await plain.close()
    return 0


async def _run_all(
    running: Sequence[VirtualNode], bursting: Bursting | None, stop: asyncio.Event
) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for node in running:
                group.create_task(node.run(stop), name=f"node {node.settings.name}")
            if bursting is not None:
                group.create_task(bursting.run(stop), name="bursting")
    except ExceptionGroup as errors:
        raise _first(errors) from errors


def _first(errors: ExceptionGroup[Exception]) -> Exception:
    """The fault to show: one of ours if there is one, since it says what to do."""
    found: Exception = errors.subgroup(VkProviderError) or errors
    while isinstance(found, ExceptionGroup):
        found = found.exceptions[0]
    return found


def _stop_on_signals() -> asyncio.Event:
    """The first signal asks for a clean stop; the second, of either kind, ends the process."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def begin() -> None:
        stop.set()
        for number in _STOPS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in _STOPS:
        loop.add_signal_handler(number, begin)
    return stop
