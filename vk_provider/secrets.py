"""Where a secret is to be found, and its value at the moment of use; configuration never holds one.

Fed by :mod:`vk_provider.fields` (the parsed block); read by provider clients and the app at every
use, so that a rotated file or Secret is picked up without a restart.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from vk_provider.faults import (
    DeniedError,
    ForbiddenError,
    InvalidObjectError,
    KubeError,
    KubeNotFoundError,
    UnavailableError,
)
from vk_provider.log import redact

ReadSecret = Callable[[str, str, str], Awaitable[str]]
"""``(namespace, name, key) -> value`` of a Secret in the home cluster; raises ``KubeError``."""

_SHORTEST_KEY = 16
_SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class SecretKeyRef:
    """One key of a Secret in the home cluster; ``namespace`` None means the one we run in."""

    name: str
    key: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class SecretSource:
    """Where one secret lies: exactly one of a file, an environment variable or a Secret's key."""

    file: str | None = None
    env: str | None = None
    secret_key_ref: SecretKeyRef | None = None

    def __str__(self) -> str:
        if self.file is not None:
            return f"file {_shown(self.file)}"
        if self.env is not None:
            return f"environment variable {_shown(self.env)}"
        ref = self.secret_key_ref
        if ref is None:
            return "nowhere"
        return f"key {ref.key} of Secret {ref.namespace or own_namespace()}/{ref.name}"

    async def read(self, read_secret: ReadSecret | None = None) -> str:
        """The value as it is now, without the line end that editors and ``kubectl`` leave behind.
        From here on it is never printed.

        Raises:
            DeniedError: it is not there, not readable or empty: without it the backend refuses us.
            UnavailableError: the API server could not be asked for the Secret.
        """
        if self.secret_key_ref is not None:
            value = await self._from_secret(self.secret_key_ref, read_secret)
        else:
            value = self._from_machine()
        value = value.strip("\r\n")
        if not value:
            raise DeniedError(f"the secret in {self} is empty")
        redact(value)
        return value

    def _from_machine(self) -> str:
        if self.file is None:
            if self.env is None or self.env not in os.environ:
                raise DeniedError(f"{self} is not set, but a secret is expected there")
            return os.environ[self.env]
        try:
            return Path(self.file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            # The original could carry bytes of the secret, so it is not chained.
            raise DeniedError(f"the secret in {self} can't be read: {why}") from None

    async def _from_secret(self, ref: SecretKeyRef, read_secret: ReadSecret | None) -> str:
        if read_secret is None:
            raise DeniedError(f"{self} can't be read without a connection to the home cluster")
        try:
            return await read_secret(ref.namespace or own_namespace(), ref.name, ref.key)
        except (KubeNotFoundError, ForbiddenError, InvalidObjectError) as error:
            raise DeniedError(f"{self} can't be read: {error}") from error
        except KubeError as error:
            raise UnavailableError(f"{self} can't be read now: {error}") from error


def _shown(place: str) -> str:
    """The name of a place, but for one that looks like the secret itself, put there by mistake."""
    is_telling = len(place) >= _SHORTEST_KEY and "/" not in place and re.search(r"[0-9]", place)
    return "(its name is not shown, since it looks like a secret)" if is_telling else place


def is_sendable(token: str) -> bool:
    """Whether a header can carry it: a file with two lines is no token."""
    return token.isascii() and token.isprintable()


def own_namespace() -> str:
    """The namespace this process runs in; ``default`` outside a cluster."""
    named = os.environ.get("POD_NAMESPACE", "")
    if named:
        return named
    try:
        return _SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"
