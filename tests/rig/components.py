"""The command lines of the control plane's programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.rig.pki import Pair

# The defaults (20 to 50 requests per second) would be what a load test measures.
_CLIENT_LIMITS = ["--kube-api-qps=2000", "--kube-api-burst=4000"]
_MUTATING_POLICIES = [
    "--feature-gates=MutatingAdmissionPolicy=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
]


@dataclass(frozen=True, slots=True)
class Layout:
    """Files and ports of one bed."""

    folder: Path
    etcd_client_port: int
    etcd_peer_port: int
    api_port: int
    ca: Pair
    server: Pair
    kubelet_client: Pair
    front_proxy: Pair
    service_account: Pair
    address: str = "127.0.0.1"

    @property
    def audit_log(self) -> Path:
        """Where the API server logs requests."""
        return self.folder / "audit.log"

    @property
    def audit_policy(self) -> Path:
        """Where the audit policy lies."""
        return self.folder / "audit-policy.yaml"


def etcd(layout: Layout) -> list[str]:
    """Return etcd's flags: loopback only, and no fsync, since its data never outlives the bed."""
    client = f"http://127.0.0.1:{layout.etcd_client_port}"
    peer = f"http://127.0.0.1:{layout.etcd_peer_port}"
    return [
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
    ]


def apiserver(layout: Layout, version: str, *, audit: bool, extra: Sequence[str] = ()) -> list[str]:
    """Return the API server's flags for a version; `extra` comes last and wins."""
    return [
        f"--etcd-servers=http://127.0.0.1:{layout.etcd_client_port}",
        f"--secure-port={layout.api_port}",
        f"--bind-address={layout.address}",
        # Nobody reaches us through the `kubernetes` Service, and without a default route the
        # server cannot choose an address by itself.
        f"--advertise-address={layout.address}",
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={layout.server.certificate}",
        f"--tls-private-key-file={layout.server.key}",
        f"--client-ca-file={layout.ca.certificate}",
        f"--service-account-key-file={layout.service_account.certificate}",
        f"--service-account-signing-key-file={layout.service_account.key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-client-certificate={layout.kubelet_client.certificate}",
        f"--kubelet-client-key={layout.kubelet_client.key}",
        f"--kubelet-certificate-authority={layout.ca.certificate}",
        "--kubelet-preferred-address-types=InternalIP",
        # What aggregated API servers, such as metrics-server, believe a request by.
        f"--requestheader-client-ca-file={layout.ca.certificate}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={layout.front_proxy.certificate}",
        f"--proxy-client-key-file={layout.front_proxy.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=3000",
        *(_audit(layout) if audit else []),
        *([] if serves_mutating_policies(version) else _MUTATING_POLICIES),
        *extra,
    ]


def serves_mutating_policies(version: str) -> bool:
    """Whether mutating admission policies are served as v1, and without being asked for."""
    major, minor, *_ = version.split(".")
    return (int(major), int(minor)) >= (1, 36)


def controller_manager(layout: Layout, kubeconfig: Path, extra: Sequence[str] = ()) -> list[str]:
    """Return the controller manager's flags."""
    return [
        *_client(kubeconfig),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={layout.service_account.key}",
        f"--root-ca-file={layout.ca.certificate}",
        f"--cluster-signing-cert-file={layout.ca.certificate}",
        f"--cluster-signing-key-file={layout.ca.key}",
        "--concurrent-namespace-syncs=20",
        *extra,
    ]


def scheduler(kubeconfig: Path, extra: Sequence[str] = ()) -> list[str]:
    """Return the scheduler's flags."""
    return [*_client(kubeconfig), *extra]


def _client(kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",  # nobody scrapes them, and a port less can clash
        *_CLIENT_LIMITS,
    ]


def _audit(layout: Layout) -> list[str]:
    return [
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-mode=blocking",  # no batch that is still in memory when a test counts
        "--audit-log-format=json",
        "--audit-log-maxsize=10000",  # MB; a rotation in the middle of a test would lose counts
    ]
