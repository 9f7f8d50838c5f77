"""Where the API server is and who we are: the only importer of ``kubernetes``.

In a pod: the ServiceAccount that the kubelet mounted. Elsewhere: a kubeconfig with certificates, a
token, a token file or an exec plugin, read by the ``kubernetes`` package, which is loaded only
then: it costs a sixth of a second and 20 MB, and private keys stay out of the temp folder.

Fed by files, plugins and the environment; feeds ``app`` with an identity for ``kube.client``.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from vk_provider.faults import ConfigError
from vk_provider.fields import show
from vk_provider.kube.identity import Credentials, Loaded, Source, in_cluster
from vk_provider.kube.tls_material import TlsMaterial
from vk_provider.urls import http_url
from vk_provider.yaml_documents import without_names

__all__ = ["Credentials", "load_credentials"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_SECONDS = 60.0
_WHOLE_ENTRY = re.compile(r"\{(?:'name': '([^']*)')?.*\}", re.DOTALL)
EXPIRY_MARGIN = timedelta(seconds=90)
"""An exec plugin's answer is renewed this long before it expires; sources are read every 60 s."""

_UNSUPPORTED: Mapping[str, str] = {
    "auth-provider": "was removed from Kubernetes clients; use an exec plugin, or a token",
    "username": "basic authentication was removed in Kubernetes 1.19; use a token or certificate",
    "as-groups": "is not supported; use an identity that needs no impersonation",
    "as-user-extra": "is not supported; use an identity that needs no impersonation",
}


async def load_credentials(kubeconfig: Path | None, context: str | None = None) -> Credentials:
    """From this kubeconfig; without one from the pod we run in, ``$KUBECONFIG`` or ``~/.kube``.

    Raises :class:`~vk_provider.faults.ConfigError` saying what to do.
    """
    source = choose_source(kubeconfig, context, os.environ)
    return Credentials(source, await source(False))


def choose_source(given: Path | None, context: str | None, environ: Mapping[str, str]) -> Source:
    """What credentials are read from, again and again."""
    named = [part for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if given is None and not named and "KUBERNETES_SERVICE_HOST" in environ:
        return in_cluster(SERVICE_ACCOUNT, environ)
    files = [given] if given else [Path(part).expanduser() for part in named]
    files = files or [Path.home() / ".kube" / "config"]
    if not any(path.exists() for path in files):
        names = ", ".join(map(str, files))
        advice = "name one with --kubeconfig, or run inside a cluster"
        raise ConfigError([f"no kubeconfig at {names}: {advice}"])
    return _Kubeconfig(files, context).load


@dataclass(frozen=True, slots=True)
class _Entry:
    """The context that was chosen: nodes of the ``kubernetes`` package's kubeconfig reader."""

    cluster: Any
    user: Any
    namespace: str


@dataclass(slots=True)
class _Grant:
    """What an exec plugin answered."""

    token: str | None
    certificate: bytes | None
    key: bytes | None
    expires: datetime | None

    def fresh(self) -> bool:
        """Whether it may still be used at the next reading."""
        return self.expires is None or datetime.now(UTC) + EXPIRY_MARGIN < self.expires


class _Kubeconfig:
    """Kubeconfig files, merged as kubectl does."""

    def __init__(self, files: Sequence[Path], context: str | None) -> None:
        # Loaded here, since most processes run in a cluster and never need it.
        from kubernetes.aio.config import config_exception, exec_provider, kube_config

        self._library: Any = kube_config
        self._exec_provider: Any = exec_provider.ExecProvider
        self._library_fault: type[Exception] = config_exception.ConfigException
        self._files = files
        self._context = context
        self._grant: _Grant | None = None

    async def load(self, refused: bool) -> Loaded:
        """Read the files; run the exec plugin if its last answer has run out or was refused."""
        try:
            entry = await asyncio.to_thread(self._read)
            grant = await self._granted(entry.user, refused)
            return await asyncio.to_thread(self._loaded, entry, grant)
        except (self._library_fault, OSError, ValueError) as error:
            raise self._refusal(_without_entries(str(error))) from error
        except (TypeError, KeyError, AttributeError) as error:
            # A number where a list or a mapping should be; Python's words may show what it found.
            raise self._refusal("an entry is not of the shape of a kubeconfig's") from error

    def _refusal(self, words: str) -> ConfigError:
        return ConfigError([f"kubeconfig {', '.join(map(str, self._files))}: {words}"])

    def _read(self) -> _Entry:
        for path in filter(Path.exists, self._files):
            if not isinstance(_yaml_of(path), dict):
                raise ConfigError([f"kubeconfig {path}: is empty or no mapping"])
        merged = self._library.KubeConfigMerger(os.pathsep.join(map(str, self._files))).config
        name = self._context or merged["current-context"]
        context = merged["contexts"].get_with_name(name)["context"]
        cluster = merged["clusters"].get_with_name(context["cluster"])["cluster"]
        user = self._library.ConfigNode("user", {})
        if context.safe_get("user"):
            user = merged["users"].get_with_name(context["user"])["user"]
        for key, why in _UNSUPPORTED.items():
            if user.safe_get(key):
                raise ConfigError([f"kubeconfig {user.path}: {user.name}/{key} {why}"])
        return _Entry(cluster, user, context.safe_get("namespace") or "default")

    async def _granted(self, user: Any, refused: bool) -> _Grant | None:
        if not user.safe_get("exec"):
            return None
        if self._grant is None or refused or not self._grant.fresh():
            self._grant = await self._run_plugin(user["exec"])
        return self._grant

    async def _run_plugin(self, plugin: Any) -> _Grant:
        command = str(plugin["command"])
        if os.sep in command and not Path(command).is_absolute():
            command = str(_folder(plugin) / command)
        node = self._library.ConfigNode(plugin.name, {**plugin.value, "command": command})
        try:
            async with asyncio.timeout(EXEC_SECONDS):
                status = await self._exec_provider(node).run()
        except TimeoutError as error:
            problem = f"exec plugin {command}: no answer within {EXEC_SECONDS:.0f} s"
            raise ConfigError([problem]) from error
        except OSError as error:
            hint = plugin.safe_get("installHint") or "install it, or name another kubeconfig"
            raise ConfigError([f"exec plugin {command}: {error.strerror}. {hint}"]) from error
        return _grant_of(status, command)

    def _loaded(self, entry: _Entry, grant: _Grant | None) -> Loaded:
        cluster, user = entry.cluster, entry.user
        granted = grant or _Grant(None, None, None, None)
        token = granted.token or _token(user)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if user.safe_get("as"):
            headers["Impersonate-User"] = user["as"]
        server = _server(cluster)
        tls = TlsMaterial(
            authorities=self._material(cluster, "certificate-authority"),
            certificate=granted.certificate or self._material(user, "client-certificate"),
            key=granted.key or self._material(user, "client-key"),
            verify=not cluster.safe_get("insecure-skip-tls-verify"),
            plain=server.startswith("http://"),
        )
        name, proxy = cluster.safe_get("tls-server-name"), cluster.safe_get("proxy-url")
        return Loaded(server, entry.namespace, tls, headers, name, proxy)

    def _material(self, node: Any, key: str) -> bytes | None:
        source = self._library.FileOrData(node, key, file_base_path=str(_folder(node)))
        encoded = source.as_data()
        try:
            return base64.b64decode("".join(encoded.split()), validate=True) if encoded else None
        except ValueError as error:
            raise ValueError(f"{key}-data: not base64 ({error})") from error


def _yaml_of(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        # PyYAML's own words show the line, which may hold a token.
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        what = without_names(getattr(error, "problem", None) or "it can't be read")
        raise ConfigError([f"kubeconfig {place}: not YAML: {what}"]) from error
    except RecursionError as error:
        raise ConfigError([f"kubeconfig {path}: nested too deeply"]) from error


def _without_entries(words: str) -> str:
    """The library's words; it names an entry by all that it holds, tokens and keys included."""
    return _WHOLE_ENTRY.sub(lambda entry: entry[1] or "…", words)


def _server(cluster: Any) -> str:
    """The API server's address. Raises ValueError for what can't be one."""
    given = cluster["server"]
    if http_url(str(given)) is None:
        raise ValueError(f"server: found {show(given)}, allowed: https://HOST:PORT")
    return str(given).rstrip("/")


def _folder(node: Any) -> Path:
    return Path(node.path).absolute().parent if node.path else Path.cwd()


def _token(user: Any) -> str | None:
    # A file wins over a literal, as for kubectl: the file is the one that rotates.
    if user.safe_get("tokenFile"):
        path: Path = _folder(user) / user["tokenFile"]
        return path.read_text().strip()
    token: str | None = user.safe_get("token")
    return token or None


def _grant_of(status: Any, command: str) -> _Grant:
    answer = status if isinstance(status, dict) else {}
    certificate, key = answer.get("clientCertificateData"), answer.get("clientKeyData")
    if not answer.get("token") and not (certificate and key):
        wanted = "neither status.token nor status.clientCertificateData with clientKeyData"
        raise ConfigError([f"exec plugin {command}: its answer has {wanted}"])
    expires = answer.get("expirationTimestamp")
    return _Grant(
        answer.get("token"),
        certificate.encode() if certificate else None,
        key.encode() if key else None,
        datetime.fromisoformat(expires) if expires else None,
    )
