"""A process of its own that reads every watch event of pods and nodes and writes down what it saw.

`python -m tests.story.observer URL CA CERTIFICATE KEY NAMESPACE FILE`. Fed by the API server alone;
feeds `history.py` with one JSON line per event, stamped when it arrived. It never misses one: a
watch that ends is taken up where it ended, and if that can't be done, a line says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import aiohttp

GAP = "GAP"
_GONE = 410


class Observer:
    """Writes what happens to the objects of some collections into one file."""

    def __init__(self, session: aiohttp.ClientSession, url: str, out: TextIO) -> None:
        self._session = session
        self._url = url
        self._out = out

    async def follow(self, path: str) -> None:
        """List a collection, then write down each event of it, for ever."""
        async with self._session.get(self._url + path) as response:
            response.raise_for_status()
            listed = await response.json()
        for found in listed["items"]:
            self._write("LISTED", found | {"kind": listed["kind"].removesuffix("List")})
        version = listed["metadata"]["resourceVersion"]
        while version:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                version = await self._watch(path, version)

    async def _watch(self, path: str, version: str) -> str:
        """Write down events until the watch ends; return the version to go on from."""
        query = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true"}
        async with self._session.get(self._url + path, params=query) as response:
            async for line in response.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self._out.write(json.dumps({"t": time.time(), "type": GAP}) + "\n")
                    return ""
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._write(event["type"], event["object"])
        return version

    def _write(self, kind: str, found: dict[str, Any]) -> None:
        """One line, whole and at once: whoever reads the file sees complete lines only."""
        self._out.write(json.dumps({"t": time.time(), "type": kind, "object": found}) + "\n")
        self._out.flush()


async def observe(arguments: list[str]) -> None:
    """Follow the pods of a namespace and all nodes until killed."""
    url, authority, certificate, key, namespace, file = arguments
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(certificate, key)
    paths = (f"/api/v1/namespaces/{namespace}/pods", "/api/v1/nodes")
    connector = aiohttp.TCPConnector(ssl=context)
    timeout = aiohttp.ClientTimeout(total=None)
    with Path(file).open("a") as out:  # noqa: ASYNC230 - one local open
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, read_bufsize=2**20
        ) as session:
            observer = Observer(session, url, out)
            await asyncio.gather(*(observer.follow(path) for path in paths))


if __name__ == "__main__":
    asyncio.run(observe(sys.argv[1:]))
