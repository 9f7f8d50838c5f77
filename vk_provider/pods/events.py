"""The words of our Events, Failed pods and waiting containers.

Fed by nothing; read by the lifecycle (which decides), the status and the Event writer.
Dashboards and alerts match these words: they are added, never changed.
"""

from __future__ import annotations

from enum import StrEnum


class FailedReason(StrEnum):
    """``status.reason`` of a pod that we failed; its Event carries the same reason."""

    OUT_OF_CAPACITY = "OutOfCapacity"
    UNSUPPORTED = "Unsupported"
    REJECTED = "Rejected"
    PROVIDER_LOST = "ProviderLost"
    PREEMPTED = "Preempted"
    CONTAINER_EXITED = "ContainerExited"
    NODE_AFFINITY = "NodeAffinity"
    TAINT_TOLERATION = "TaintToleration"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    POD_OS_NOT_SUPPORTED = "PodOSNotSupported"


def out_of(resource: str) -> str:
    """The Failed reason of a pod that asks for more of a resource than the node has."""
    return f"{_OUT_OF}{resource}"


def counted(reason: str) -> str:
    """A Failed reason as a metric's label: the names of resources are a pod author's to choose, and
    what another cluster's kubelet says is its own, so neither makes a series of its own."""
    if reason in _FAILED_REASONS:
        return reason
    return f"{_OUT_OF}Resource" if reason.startswith(_OUT_OF) else "Other"


_OUT_OF = "OutOf"
_FAILED_REASONS = frozenset(str(each) for each in FailedReason)


class WaitingReason(StrEnum):
    """Why a container has not started, in ``state.waiting.reason``."""

    CONTAINER_CREATING = "ContainerCreating"
    POD_INITIALIZING = "PodInitializing"
    """The kubelet's default in a pod that has init containers."""
    CREATE_BACK_OFF = "CreateBackOff"
    PROVIDER_UNAVAILABLE = "ProviderUnavailable"
    CREATE_CONTAINER_CONFIG_ERROR = "CreateContainerConfigError"
    DAEMON_SET_NOT_SUPPORTED = "DaemonSetNotSupported"


class TerminatedReason(StrEnum):
    """Why a container ended, in ``state.terminated.reason``, where the backend has no word."""

    COMPLETED = "Completed"
    ERROR = "Error"
    CONTAINER_STATUS_UNKNOWN = "ContainerStatusUnknown"


class EventReason(StrEnum):
    """Reasons of Events beside the Failed reasons."""

    BACK_OFF = "BackOff"
    NOT_RECREATED = "NotRecreated"
    PROBES_NOT_RUN = "ProbesNotRun"
    UPDATE_IGNORED = "UpdateIgnored"
    """Somebody changed a running pod, and its backend can't or won't follow."""
    FAILED_KILL_POD = "FailedKillPod"
    """The backend does not end the instance, or can't be asked to."""
    DAEMON_SET_NOT_SUPPORTED = "DaemonSetNotSupported"
    OPTIONAL_CONFIG_MAP_NOT_FOUND = "OptionalConfigMapNotFound"
    OPTIONAL_SECRET_NOT_FOUND = "OptionalSecretNotFound"
    MANDATORY_CONFIG_MAP_NOT_FOUND = "MandatoryConfigMapNotFound"
    MANDATORY_SECRET_NOT_FOUND = "MandatorySecretNotFound"
