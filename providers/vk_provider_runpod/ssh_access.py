"""How an instance is told whose key may log in, and where its SSH server is to be found.

Pure. RunPod has no exec: a command runs over SSH, where the image has a server. RunPod's own images
start one when PUBLIC_KEY is set; others follow the same habit, some with SSH_PUBLIC_KEY.
Fed by ``translate`` on the way out, and by ``ssh`` with a pod as RunPod shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vk_provider.faults import InstanceNotFoundError, NotSupportedError, UnavailableError
from vk_provider.pods.reading import mapping, mappings, number, strings, text, texts
from vk_provider.pods.types import FieldNote, Json, ResolvedPod
from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.stamp import read_mark

ANNOTATION = "runpod.vk-provider.dev/ssh"
KEY_NAMES = ("PUBLIC_KEY", "SSH_PUBLIC_KEY")
PORT = 22
MAPPING = f"{PORT}/tcp"
NOT_CONFIGURED = (
    "RunPod runs no commands in containers by itself; over SSH it can be done with "
    "`ssh: {privateKey: …}` in the backend's configuration"
)
_DEFAULT_USER = "root"
_START = "start"
START_SERVER = (
    '( umask 077; mkdir -p ~root/.ssh; printf "%s\\n" "$PUBLIC_KEY" >> ~root/.ssh/authorized_keys; '
    "if [ -x /usr/sbin/sshd ]; then mkdir -p /run/sshd; ssh-keygen -A; /usr/sbin/sshd; "
    "elif command -v dropbear; then mkdir -p /etc/dropbear; dropbear -R -s; fi "
    ") >/dev/null 2>&1 </dev/null || :; "
)
"""Starts the image's server beside the pod's own command, and stays out of the way where it has
none. What goes wrong with it is no fault of the command."""


@dataclass(frozen=True, slots=True)
class SshTarget:
    """Where an instance's SSH server listens, and as whom to log in."""

    host: str
    port: int
    username: str

    def __str__(self) -> str:
        return f"{self.username}@{self.host}:{self.port}"


def is_wanted(pod: ResolvedPod, config: RunPodConfig) -> bool:
    """Whether this pod's instance lets us in: configured, and the pod does not say otherwise."""
    return config.ssh is not None and _said(pod) != "false"


def is_started(pod: ResolvedPod, config: RunPodConfig) -> bool:
    """Whether a start wrapper is to start the image's server beside the pod's own command."""
    if config.ssh is None or not is_wanted(pod, config) or pod.containers[0].command is None:
        return False
    return config.ssh.start_server or _said(pod) == _START


def _said(pod: ResolvedPod) -> str:
    return strings(mapping(pod.pod, "metadata"), "annotations").get(ANNOTATION, "").strip().lower()


def key_env(env: Mapping[str, str], public_key: str) -> dict[str, str]:
    """The variables from which images learn whose key may log in; the pod's own keys stay."""
    return {name: "\n".join(filter(None, [env.get(name, ""), public_key])) for name in KEY_NAMES}


def with_mapping(ports: Sequence[str]) -> list[str]:
    """The ports, among them the SSH server's."""
    is_taken = any(port.partition("/")[0] == str(PORT) for port in ports)
    return [*ports] if is_taken else [*ports, MAPPING]


def notes(pod: ResolvedPod, config: RunPodConfig) -> Iterator[FieldNote]:
    """What a pod should know whose commands are to run over SSH."""
    container = pod.containers[0]
    if container.command is None:
        return
    path = f"{container.field_path}.command"
    if is_started(pod, config):
        yield FieldNote(path, "runs beside the image's SSH server, if it has one")
        return
    yield FieldNote(
        path,
        "replaces the image's start script, which starts its SSH server as a rule: kubectl "
        "exec, cp and port-forward work only if the command starts it, or with the annotation "
        f"{ANNOTATION}: {_START}",
    )


def target_of(pod: Json, container: str | None = None) -> SshTarget:
    """Where the server of a pod of RunPod's is.

    Raises:
        InstanceNotFoundError: it has no container of that name (None: of any).
        NotSupportedError: it has no port for SSH.
        UnavailableError: it is not reachable yet.
    """
    mark, pod_id = read_mark(pod), text(pod, "id")
    if container is not None and (mark is None or mark.container != container):
        raise InstanceNotFoundError(f'instance {pod_id} has no container "{container}"')
    if MAPPING not in (texts(pod, "ports") or ()):
        raise NotSupportedError(
            f"instance {pod_id} has no mapping for port {MAPPING}, so nothing reaches its SSH "
            f"server: it was made before `ssh` was configured, or its pod carries the annotation "
            f'{ANNOTATION}: "false"'
        )
    found = _direct(pod) or _mapped(pod)
    if found is None:
        raise UnavailableError(
            f"RunPod has not mapped port {MAPPING} of instance {pod_id} yet: its container is "
            "not running, or started a moment ago"
        )
    return found


def _direct(pod: Json) -> SshTarget | None:
    direct = mapping(mapping(pod, "ssh"), "direct")
    host, port = text(direct, "host"), number(direct, "port")
    username = text(direct, "username") or _DEFAULT_USER
    return SshTarget(host, port, username) if host and port else None


def _mapped(pod: Json) -> SshTarget | None:
    for _, entry in mappings(mapping(pod, "runtime"), "ports"):
        host, port = text(entry, "ip"), number(entry, "public")
        is_ssh = number(entry, "private") == PORT and text(entry, "type") == "tcp"
        if is_ssh and host and port:
            return SshTarget(host, port, _DEFAULT_USER)
    return None
