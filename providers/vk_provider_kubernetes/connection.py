"""Who we are in the other cluster: a kubeconfig, or a server with a token; both may rotate.

Files, exec plugins and the token's source are read again every minute and after a 401.
Fed by the configuration; feeds ``client`` and ``upstream`` with an identity.
"""

from __future__ import annotations

from pathlib import Path

from vk_provider.faults import ConfigError, ProviderError
from vk_provider.kube.credentials import load_credentials
from vk_provider.kube.identity import Credentials, Loaded
from vk_provider.kube.tls_material import TlsMaterial
from vk_provider.secrets import ReadSecret, SecretSource
from vk_provider_kubernetes.config import KubernetesConfig


async def connect(config: KubernetesConfig, read_secret: ReadSecret | None) -> Credentials:
    """The identity. Raises ``ConfigError``, or ``ProviderError`` for a token that is not there."""
    if config.kubeconfig is not None:
        return await load_credentials(_path(config.kubeconfig), config.context)
    server, token = config.server, config.token
    if server is None or token is None:
        raise ConfigError(["the other cluster has no server, or no token for it"])
    loaded = await _loaded(server, token, config, read_secret)

    async def source(_: bool) -> Loaded:
        try:
            return await _loaded(server, token, config, read_secret)
        except ProviderError as fault:
            # The identity keeps the old token for this kind of fault.
            raise ConfigError([str(fault)]) from fault

    return Credentials(source, loaded)


def _path(text: str) -> Path:
    return Path(text).expanduser()


async def _loaded(
    server: str, token: SecretSource, config: KubernetesConfig, read_secret: ReadSecret | None
) -> Loaded:
    value = await token.read(read_secret)
    return Loaded(
        server=server,
        namespace=config.namespace,
        tls=TlsMaterial(_authorities(config), plain=server.startswith("http://")),
        headers={"Authorization": f"Bearer {value}"},
    )


def _authorities(config: KubernetesConfig) -> bytes | None:
    path = config.certificate_authority
    try:
        return Path(path).read_bytes() if path else None
    except OSError as error:
        message = f"certificateAuthority {path}: {error.strerror}; a PEM file is wanted"
        raise ConfigError([message]) from error
