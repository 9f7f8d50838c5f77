"""Stands behind the Pod that is named like the Node, where the suite asks for statistics.

The suite reads them through a *pod* proxy, port 10250, so the API server sends no identity along.
The node has authentication on; this repeats the two requests with a client certificate.
Fed by the API server; asks the node under test.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from tests.rig.control_plane import ControlPlane
from tests.rig.pki import Pair

PORT = 10250
PATHS = ("/stats/summary", "/metrics/resource")


@asynccontextmanager
async def stand_in(bed: ControlPlane, address: str, node_port: int) -> AsyncIterator[None]:
    """Listen on the address while the block runs."""
    client = bed.authority.issue("stand-in", "kube-apiserver-kubelet-client", ["system:masters"])
    trusting = ssl.create_default_context(cafile=str(bed.ca_file))
    trusting.load_cert_chain(client.certificate, client.key)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session:

        async def repeat(request: web.Request) -> web.Response:
            url = f"https://{address}:{node_port}{request.path}"
            async with session.get(url) as answer:
                return web.Response(
                    status=answer.status,
                    body=await answer.read(),
                    headers={"Content-Type": answer.headers.get("Content-Type", "text/plain")},
                )

        application = web.Application()
        for path in PATHS:
            application.router.add_get(path, repeat)
        runner = web.AppRunner(application)
        await runner.setup()
        serving = _serving(bed.serving_pair(address, name="stand-in"))
        try:
            await web.TCPSite(runner, address, PORT, ssl_context=serving).start()
            yield
        finally:
            await runner.cleanup()


def _serving(pair: Pair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context
