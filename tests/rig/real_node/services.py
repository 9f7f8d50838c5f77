"""Services and DNS of a flat network: kube-proxy and CoreDNS for one control plane.

Both run as plain processes inside the enclosure. Fed by a bed; feeds its Services with life.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tests.rig import builds
from tests.rig.access import ADMIN_GROUP
from tests.rig.control_plane import ControlPlane
from tests.rig.real_node.network import POD_RANGE

DNS_ADDRESS = "10.0.0.10"
DNS_DOMAIN = "cluster.local"

_CORE_FILE = """\
.:53 {{
    bind {address}
    errors
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 5
    }}
    cache 5
}}
"""


async def start_proxy(bed: ControlPlane, node: str) -> None:
    """Make ClusterIPs of this control plane work in the whole network; `node` is where it is."""
    program = await asyncio.to_thread(builds.binary, "kube-proxy", bed.kube_version)
    await bed.start(
        "kube-proxy",
        [
            program,
            f"--kubeconfig={bed.kubeconfig_for_user('kube-proxy', [ADMIN_GROUP])}",
            "--proxy-mode=iptables",
            f"--hostname-override={node}",
            f"--cluster-cidr={POD_RANGE}",
            # These sysctls are the machine's.
            "--conntrack-max-per-core=0",
            "--conntrack-min=0",
            f"--healthz-bind-address=127.0.0.1:{bed.free_port()}",
            f"--metrics-bind-address=127.0.0.1:{bed.free_port()}",
        ],
    )


async def start_dns(bed: ControlPlane, address: str) -> None:
    """Answer for this control plane's Services on port 53 of `address`, and as its kube-dns."""
    program = await asyncio.to_thread(builds.binary, "coredns")
    file = bed.folder / "Corefile"
    identity = bed.kubeconfig_for_user("coredns", [ADMIN_GROUP])
    file.write_text(_CORE_FILE.format(address=address, domain=DNS_DOMAIN, kubeconfig=identity))
    await bed.start("coredns", [program, "-conf", file])
    await bed.apply(_dns_service(address))


def _dns_service(address: str) -> list[dict[str, Any]]:
    ports = [("dns", "UDP"), ("dns-tcp", "TCP")]
    service: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {
            "clusterIP": DNS_ADDRESS,
            "ports": [{"name": name, "port": 53, "protocol": kind} for name, kind in ports],
        },
    }
    endpoints: dict[str, Any] = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kube-dns-1",
            "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": "kube-dns"},
        },
        "addressType": "IPv4",
        "ports": [{"name": name, "port": 53, "protocol": kind} for name, kind in ports],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }
    return [service, endpoints]
