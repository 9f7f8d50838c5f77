"""The real Prometheus on a bed, and promtool, which tests rules.

async with prometheus(bed, {"scrape_configs": [...]}) as url:
    answer = await ask(url, "up")
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.rig import debian
from tests.rig.polling import answers, eventually
from tests.rig.processes import Processes

NAME = "prometheus"
PACKAGE = "prometheus"


class PromtoolError(RuntimeError):
    """promtool found a fault; the message holds what it printed."""


def promtool_path() -> Path:
    """Return the path of promtool, unpacking its package if the cache lacks it."""
    return debian.program(PACKAGE, "promtool")


async def promtool(*arguments: str | Path) -> str:
    """Run promtool (`check rules FILE`, `test rules FILE`); return what it printed."""
    program = await asyncio.to_thread(promtool_path)
    process = await asyncio.create_subprocess_exec(
        program,
        *map(str, arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    if process.returncode != 0:
        words = " ".join(map(str, arguments))
        raise PromtoolError(f"promtool {words}: {process.returncode}:\n{printed.decode()}")
    return printed.decode()


@asynccontextmanager
async def prometheus(
    bed: Processes, port: int, config: Mapping[str, Any], rule_files: Sequence[Path] = ()
) -> AsyncIterator[str]:
    """Run it with this configuration (as of prometheus.yml); gives its URL once it is ready."""
    program = await asyncio.to_thread(debian.program, PACKAGE, "prometheus")
    file = bed.folder / "prometheus.json"  # JSON is YAML
    file.write_text(json.dumps({**config, "rule_files": [str(path) for path in rule_files]}))
    url = f"http://127.0.0.1:{port}"
    await bed.start(
        NAME,
        [
            program,
            f"--config.file={file}",
            f"--storage.tsdb.path={bed.folder / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        ],
    )
    try:
        await eventually(lambda: answers(f"{url}/-/ready"), "Prometheus ready", interval=0.2)
        yield url
    finally:
        await bed.stop(NAME)


async def ask(url: str, query: str) -> list[dict[str, Any]]:
    """Evaluate a query now; return the result vector. ValueError holds Prometheus' complaint."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{url}/api/v1/query", params={"query": query}) as response,
    ):
        answer = await response.json()
    if answer["status"] != "success":
        raise ValueError(f"{answer['errorType']}: {answer['error']}: {query}")
    return list(answer["data"]["result"])
