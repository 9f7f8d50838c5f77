"""What the story plays on: a cluster with home GPUs, Kueue, the descheduler, Prometheus, backends.

Fed by ``__main__``; offers the acts short questions, and follows what the observer writes down.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import yaml

from tests.rig import identity
from tests.rig.access import ADMIN_GROUP
from tests.rig.control_plane import ControlPlane
from tests.rig.descheduler import descheduler
from tests.rig.kueue import kueue
from tests.rig.kwok import Stages
from tests.rig.polling import eventually
from tests.rig.prometheus import prometheus
from tests.rig.state_metrics import StateMetrics, state_metrics
from tests.story import settings, workloads
from tests.story.history import History
from tests.story.show import Show

DEPLOY = Path(__file__).parents[2] / "deploy"
OVERLAY = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [{base}]
components: [{components}]
"""
NODES = (("l40s", "NVIDIA L40S", 8), ("a100", "NVIDIA A100 80GB PCIe", 8))
"""Cheap first: the name, the GPU it rents, how many."""
HOME_START_SECONDS = 2.0
HOME_STOP_SECONDS = 1.0
PATIENCE_SECONDS = 60.0

T = TypeVar("T")


class StoryError(Exception):
    """Something that the story was going to show did not come."""


class Stage:
    """The cluster, the backends and what has been seen so far."""

    def __init__(self, bed: ControlPlane, session: aiohttp.ClientSession) -> None:
        self.bed = bed
        self.history = History(workloads.INFERENCE, workloads.TRAINING)
        self.show = Show(time.time(), {name: gpus for name, _, gpus in NODES})
        self.prices: list[tuple[float, float]] = []
        self.simulators: dict[str, str] = {}
        self.state_metrics: StateMetrics
        self._session = session

    async def until(
        self, what: str, probe: Callable[[], T | None], seconds: float = PATIENCE_SECONDS
    ) -> T:
        """Look again and again at what was seen, until the answer is true; else StoryError."""
        deadline = time.monotonic() + seconds
        while not (answer := probe()):
            if time.monotonic() > deadline:
                raise StoryError(f"expected within {seconds:.0f} s: {what}\n{self._logs()}")
            await asyncio.sleep(0.05)
        return answer

    async def ledgers(self) -> list[dict[str, Any]]:
        """The bill of each backend; ``clock`` is our time at its ``now``."""
        found = []
        for url in self.simulators.values():
            ledger: dict[str, Any] = await self._get(f"{url}/_sim/ledger")
            found.append({**ledger, "clock": time.time()})
        return found

    async def watch_bill(self) -> None:
        """Write down what is being paid per hour, twice a second, for ever."""
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                open_now = [one for ledger in await self.ledgers() for one in ledger["open"]]
                self.prices.append((time.time(), sum(one["usdPerHour"] for one in open_now)))
            await asyncio.sleep(0.5)

    async def follow(self, file: Path) -> None:
        """Absorb the observer's lines as they come, and show what they change, for ever."""
        rest = ""
        with file.open() as lines:
            while True:
                *whole, rest = (rest + lines.read()).split("\n")
                for line in whole:
                    self.history.take(json.loads(line))
                if self.history.moments:
                    self.show.moment(self.history.now, self.usd_per_hour, time.time())
                await asyncio.sleep(0.05)

    @property
    def usd_per_hour(self) -> float:
        """What is being paid now."""
        return self.prices[-1][1] if self.prices else 0.0

    async def answers(self, url: str) -> bool:
        """Whether a server is up."""
        try:
            await self._get(url)
        except (aiohttp.ClientError, StoryError):
            return False
        return True

    async def _get(self, url: str) -> Any:
        async with self._session.get(url) as answer:
            if answer.status >= 300:
                raise StoryError(f"GET {url}: {answer.status}: {await answer.text()}")
            return json.loads(await answer.text())

    def _logs(self) -> str:
        tails = (
            f"--- {name}\n{self.bed.log_tail(name, 15)}" for name in ("vk-provider", "descheduler")
        )
        return "\n".join([str(self.history.now), *tails])


@asynccontextmanager
async def set_up(*, admission_check: bool = False) -> AsyncIterator[Stage]:
    """Everything runs and is observed; the cluster is empty."""
    async with AsyncExitStack() as stack:
        bed = await stack.enter_async_context(ControlPlane(audit=False))
        stage = Stage(bed, await stack.enter_async_context(aiohttp.ClientSession()))
        await _home(bed)
        await _observe(stage, stack)
        await stack.enter_async_context(kueue(bed))
        await bed.apply(workloads.CLASSES)
        url = await _prometheus(stage, stack)
        await _backends(stage)
        await _provider(stage, url, admission_check)
        await stack.enter_async_context(
            descheduler(
                bed,
                settings.policy(),
                interval_seconds=settings.CYCLE_SECONDS,
                kubeconfig=await _descheduler_account(bed),
            )
        )
        stack.push_async_callback(bed.stop, "vk-provider")
        yield stage


async def _home(bed: ControlPlane) -> None:
    stages = Stages(HOME_START_SECONDS, HOME_STOP_SECONDS, jobs_complete_when=workloads.FINISH)
    room = {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": str(workloads.GPUS_PER_NODE)}
    for number in range(1, workloads.HOME_NODES + 1):
        await bed.add_home_node(f"home-{number}", room, workloads.HOME, stages=stages)


async def _observe(stage: Stage, stack: AsyncExitStack) -> None:
    """Start the observer, and follow what it writes down."""
    bed = stage.bed
    file = bed.folder / "observed.jsonl"
    file.touch()
    pair = bed.authority.issue("observer", "observer", [ADMIN_GROUP])
    words = [bed.url, str(bed.ca_file), str(pair.certificate), str(pair.key), "default", str(file)]
    await bed.start("observer", [sys.executable, "-m", "tests.story.observer", *words], _here())
    await _background(stack, stage.follow(file))
    await _background(stack, stage.watch_bill())


async def _background(stack: AsyncExitStack, work: Any) -> None:
    task = asyncio.create_task(work)

    async def end() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(end)


async def _prometheus(stage: Stage, stack: AsyncExitStack) -> str:
    """Prometheus and what it scrapes; its address."""
    source = await stack.enter_async_context(state_metrics(stage.bed))
    stage.state_metrics = source
    target = {"targets": [f"127.0.0.1:{source.port}"]}
    config = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"},
        "scrape_configs": [{"job_name": "kube-state-metrics", "static_configs": [target]}],
    }
    return await stack.enter_async_context(prometheus(stage.bed, stage.bed.free_port(), config))


async def _backends(stage: Stage) -> None:
    for name, _, _ in NODES:
        port = stage.bed.free_port()
        flags = ["--port", str(port), "--pull-seconds", str(settings.PULL_SECONDS)]
        flags += ["--create-latency-ms", f"50-{settings.CREATE_SECONDS * 1000:.0f}"]
        await stage.bed.start(f"simulator-{name}", [*_program(), "simulate", "runpod", *flags])
        stage.simulators[name] = f"http://127.0.0.1:{port}"
    for url in stage.simulators.values():
        clock = f"{url}/_sim/clock"
        await eventually(partial(stage.answers, clock), "the simulator answers")


async def _provider(stage: Stage, prometheus_url: str, admission_check: bool) -> None:
    """`vk-provider run` with the identity that `deploy/` ships."""
    bed = stage.bed
    overlay = bed.folder / "overlay"
    overlay.mkdir()
    components = ["bursting", *(["evacuation"] if admission_check else [])]
    (overlay / "kustomization.yaml").write_text(_overlay_in(overlay, components))
    account = await identity.install(bed, overlay)
    nodes = [settings.Outside(*each, stage.simulators[each[0]]) for each in NODES]
    plain = bed.free_port()
    ports = [(bed.free_port(), plain) for _ in nodes]
    pair = bed.serving_pair("127.0.0.1")
    written = settings.documents(nodes, pair, ports, prometheus_url, admission_check)
    file = bed.folder / "vk-provider.yaml"
    file.write_text(yaml.safe_dump_all(written, sort_keys=False))
    flags = ["run", "-f", str(file), "--kubeconfig", str(account)]
    environment = {**os.environ, "RUNPOD_API_KEY": "the-simulator-takes-any-key"}
    await bed.start("vk-provider", [*_program(), *flags], env=environment)


def _overlay_in(folder: Path, components: Sequence[str]) -> str:
    # kustomize wants relative paths.
    base = os.path.relpath(DEPLOY / "kustomize", folder.resolve())
    named = ", ".join(f"{base}/components/{name}" for name in components)
    return OVERLAY.format(base=base, components=named)


async def _descheduler_account(bed: ControlPlane) -> Path:
    name = "vk-provider-descheduler"
    return await identity.install(bed, DEPLOY / "descheduler", name=name)


def _program() -> list[str]:
    return [sys.executable, "-m", "vk_provider"]


def _here() -> dict[str, str]:
    """The environment of programs that are part of the tests: they run in the bed's folder."""
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
