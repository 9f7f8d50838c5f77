"""The configuration block of the process provider, checked field by field.

Fed by ``spec.backends[].config``; feeds :mod:`.process` and :mod:`.process_service`.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.fields import Fields

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULT_LOG_BYTES = 10 << 20


@dataclass(frozen=True, slots=True)
class ProcessConfig:
    """How pods become local processes.

    ``service`` names a service that all providers in this process with the same name share and
    that outlives them, until the loop or the process ends. ``images`` maps an image, with or
    without its tag, to the entrypoint that it stands for; other images have none and, without a
    command, just wait. ``map_ports`` gives every container port a free port of the machine.
    ``faults_file`` is read on every call, as the fake's is. ``address`` is one of the machine's: it
    is told as every instance's own, since their ports are the machine's.
    """

    service: str | None = None
    images: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    map_ports: bool = False
    folder: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    path: str = DEFAULT_PATH
    log_bytes: int = DEFAULT_LOG_BYTES
    capacity: Mapping[str, str] = field(default_factory=dict)
    faults_file: str | None = None
    address: str | None = None

    def entrypoint(self, image: str) -> tuple[str, ...]:
        """What an image runs by itself; empty where the configuration does not say."""
        name = image.partition("@")[0]
        head, colon, tag = name.rpartition(":")
        untagged = head if colon and "/" not in tag else name
        return self.images.get(image) or self.images.get(untagged) or ()


def parse_config(config: Mapping[str, Any], path: str) -> ProcessConfig:
    """The block as a value. Raises ``ConfigError`` with every problem in it."""
    problems: list[FieldProblem] = []
    fields = Fields(config, path, problems)
    folder = fields.text("folder", tempfile.gettempdir())
    parsed = ProcessConfig(
        service=fields.optional_text("service"),
        images=_images(fields),
        map_ports=fields.boolean("mapPorts", False),
        folder=Path(folder),
        address=fields.optional_text("address"),
        path=fields.text("path", DEFAULT_PATH),
        log_bytes=fields.integer("logBytes", DEFAULT_LOG_BYTES, minimum=4096),
        capacity=fields.mapping("capacity", numbers=True),
        faults_file=fields.optional_text("faultsFile"),
    )
    fields.done()
    if not parsed.folder.is_dir():
        fields.wrong("folder", folder, "a folder that exists")
    if sys.platform != "linux":
        problems.append(FieldProblem(path, f"found {sys.platform}; this provider needs Linux"))
    if problems:
        raise ConfigError(problems)
    return parsed


def _images(fields: Fields) -> Mapping[str, tuple[str, ...]]:
    """``images: {busybox: [sh, -c, …]}``; a text is split as a shell would."""
    found: dict[str, tuple[str, ...]] = {}
    block = fields.child("images")
    for image, value in block.raw().items():
        if isinstance(value, str):
            block.take(image)
            found[image] = tuple(shlex.split(value))
        else:
            found[image] = block.texts(image)
        if value in ("", []):
            block.wrong(image, value, "a command, as a list of texts")
    return found
