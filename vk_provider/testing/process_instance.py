"""One instance of the process service: its containers in their order, its guests, its end.

No task: everything happens when the keeper reports something, or when the service is asked.
Fed by :mod:`.process_link`; feeds :mod:`.process_service`.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from vk_provider.faults import InstanceNotFoundError
from vk_provider.pods.types import InstanceRef, Json, Running, Stamp, Terminated
from vk_provider.testing.process_config import ProcessConfig
from vk_provider.testing.process_container import Container, in_order
from vk_provider.testing.process_folder import environment, lay_out
from vk_provider.testing.process_guests import Guests
from vk_provider.testing.process_link import Link
from vk_provider.testing.process_log import ContainerLog
from vk_provider.testing.process_plan import Plan, Role

_NOTHING = Plan(())


@dataclass(frozen=True, slots=True)
class Order:
    """A create call as it arrives at the service. ``stamp`` None: it is a stranger's."""

    stamp: Stamp | None
    plan: Plan = _NOTHING
    request: Json = field(default_factory=dict, repr=False)


class ProcessInstance:
    """An instance and its processes, from the order to the end."""

    def __init__(
        self, ref: InstanceRef, order: Order, on_change: Callable[[ProcessInstance], None]
    ) -> None:
        self.ref, self.stamp, self.plan = ref, order.stamp, order.plan
        self.created_at = datetime.now(UTC)
        self.containers: dict[str, Container] = {}
        self.guests = Guests()
        self.ports: Mapping[int, int] = {}
        self.link: Link | None = None
        self.folder: Path | None = None
        self.garbled = self.is_deleting = self.is_lost = self.is_gone = False
        self._is_stopping = False
        self._log_bytes = 0
        self._on_change = on_change

    def begin(self, config: ProcessConfig, ports: Mapping[int, int]) -> None:
        """Make its folder and start its first containers. Raises ``OSError``."""
        self.ports, self._log_bytes = ports, config.log_bytes
        self.link = Link(config.folder, self._heard, self._ended)
        self.folder = self.link.folder
        try:
            (self.folder / "logs").mkdir()
            for plan in self.plan.containers:
                root = self.folder / "containers" / plan.name
                lay_out(plan, root, self.folder / "volumes")
                container = Container(plan, root, environment(plan, root, ports))
                self.containers[plan.name] = container
        except OSError:
            self.abandon()
            raise
        self._step()

    def delete(self, grace_seconds: float) -> None:
        """Order its end; it is gone when the keeper has gone. A shorter grace overrides."""
        self.is_deleting = True
        if self.link is None:
            _remove(self.folder)
            self.is_gone = True
        elif self.is_quiet:
            self.link.close()
        else:
            self.link.stop(grace_seconds)
        self._on_change(self)

    def find(self, name: str) -> Container:
        """A container by its name. Raises ``InstanceNotFoundError``."""
        container = self.containers.get(name)
        if container is None:
            raise InstanceNotFoundError(f'instance {self.ref.id} has no container "{name}"')
        return container

    def running(self, name: str) -> tuple[Container, Link]:
        """A container that runs. Raises ``InstanceNotFoundError``."""
        container = self.find(name)
        if self.link is None or not isinstance(container.state, Running):
            raise InstanceNotFoundError(f'container "{name}" of {self.ref.id} is not running')
        return container, self.link

    @property
    def is_quiet(self) -> bool:
        """Whether no container's process is there."""
        return not any(container.is_alive for container in self.containers.values())

    @property
    def is_decided(self) -> bool:
        """Whether all that counts has ended: the main containers, or one init container badly."""
        by_role: dict[Role, list[Container]] = {role: [] for role in Role}
        for container in self.containers.values():
            by_role[container.plan.role].append(container)
        failed = any(
            isinstance(each.state, Terminated) and each.state.exit_code != 0
            for each in by_role[Role.INIT]
        )
        return failed or all(each.is_over for each in by_role[Role.MAIN])

    def abandon(self) -> None:
        """End it at once, and tell nobody: its loop runs no more, or it never began."""
        if self.link is not None:
            self.link.abandon()
            self.link = None

    def _heard(self, event: Json) -> None:
        if self.guests.heard(event):
            return
        container = self.containers[event["name"]]
        {
            "started": container.started,
            "failed": container.failed,
            "exited": container.exited,
        }[event["event"]](event)
        self._step()
        self._on_change(self)

    def _step(self) -> None:
        """What follows from the containers' states."""
        if self.link is None:
            return
        if self.is_deleting:
            if self.is_quiet:
                self.link.close()
        elif not self.is_decided:
            self._launch(self.link)
        elif not self.is_quiet and not self._is_stopping:
            # Only sidecars are left, which run as long as somebody else does.
            self._is_stopping = True
            self.link.stop(self.plan.grace_seconds)

    def _launch(self, link: Link) -> None:
        """Start those whose turn has come."""
        for container in in_order(self.containers):
            path = link.folder / "logs" / f"{container.plan.name}.log"
            try:
                container.launch(link, ContainerLog(path, self._log_bytes))
            except OSError as error:
                container.failed({"error": error.strerror, "at": time.time()})

    def _ended(self, in_order: bool) -> None:
        """The keeper has gone."""
        self.link = None
        self.guests.lose()
        # What had ended before has lost nothing.
        self.is_lost = not (self.is_decided and self.is_quiet)
        survivors = [each.pid for each in self.containers.values() if each.is_alive and each.pid]
        for container in self.containers.values():
            container.lost(datetime.now(UTC))
        for pid in survivors if not in_order else ():
            # Its own process died with the keeper; what that had started may be left.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        if self.is_deleting:
            _remove(self.folder)
            self.is_gone = True
        self._on_change(self)


def _remove(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
