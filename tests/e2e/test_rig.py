"""The test bed itself: it starts, it is isolated, it counts, and nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.rig import audit, identity
from tests.rig.access import ApiError, KubectlError
from tests.rig.control_plane import ControlPlane
from tests.rig.polling import eventually
from tests.rig.ports import Ports
from tests.rig.processes import ProcessError, Processes
from tests.rig.recipes import kube_version

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROOT = Path(__file__).parents[2]
FOREVER = (sys.executable, "-c", "import signal; signal.pause()")
DEAF = (
    sys.executable,
    "-uc",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); signal.pause()",
)
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {type: kwok}
      containers: [{name: c, image: example.invalid/web}]
"""
NODE = """\
{apiVersion: v1, kind: Node, metadata: {name: own, labels: {}}}
"""
IDENTITY = """\
apiVersion: v1
kind: Namespace
metadata: {name: shipped}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: node, namespace: shipped}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: not-identity, namespace: shipped}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shipped-node}
rules: [{apiGroups: [""], resources: [nodes], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: shipped-node}
subjects: [{kind: ServiceAccount, name: node, namespace: shipped}]
roleRef: {kind: ClusterRole, name: shipped-node, apiGroup: rbac.authorization.k8s.io}
"""


def mentioning(text: str) -> set[int]:
    """The living processes whose command line holds a text."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()  # empty for a process that only waits
        except OSError:
            continue  # it ended meanwhile
        if text.encode() in command:
            found.add(int(entry.name))
    return found


def runs(pid: int) -> bool:
    """Whether a process lives and is no zombie."""
    try:
        return b"\nState:\tZ" not in Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return False


def left_of(folder: Path, pids: set[int]) -> list[Path | int]:
    """What is left of a bed's folder and processes."""
    return [*([folder] if folder.exists() else []), *(pid for pid in pids if runs(pid))]


async def until_gone(folder: Path, pids: set[int]) -> None:
    """Wait until neither the folder nor any of the processes is left."""

    async def gone() -> bool:
        return not left_of(folder, pids)

    await eventually(gone, f"end of {folder} and {pids}", seconds=60)


async def test_serves_the_version_asked_for(control_plane: ControlPlane) -> None:
    """`$KUBE_VERSION` is what the API server says it is."""
    version = await control_plane.get_json("/version")

    assert version["gitVersion"] == f"v{kube_version()}"


async def test_kubectl_runs_as_admin(control_plane: ControlPlane, namespace: str) -> None:
    """Input, output, and an error that says what kubectl said."""
    await control_plane.kubectl("create", "-n", namespace, "configmap", "c", "--from-literal=a=b")

    assert "c" in await control_plane.kubectl("get", "-n", namespace, "configmaps", "-o", "name")
    assert "NotFound" in await control_plane.kubectl("get", "node", "none", check=False)
    with pytest.raises(KubectlError, match="NotFound"):
        await control_plane.kubectl("get", "node", "none")


async def test_two_beds_at_once_share_nothing() -> None:
    """Each has its own address, objects and folder, and takes them all with it."""
    async with ControlPlane() as one, ControlPlane() as other:
        folders = {one.folder, other.folder}
        pids = {*one.pids.values(), *other.pids.values()}
        await one.create_namespace("here")
        with pytest.raises(ApiError, match="404"):
            await other.get_json("/api/v1/namespaces/here")
        assert len(folders) == 2

    for folder in folders:
        await until_gone(folder, pids | mentioning(str(folder)))


async def test_audit_log_counts_requests(control_plane: ControlPlane) -> None:
    """Every answered request is there, by user, verb and resource."""
    mark = control_plane.audit_mark()
    user = control_plane.kubeconfig_for_user("counted", ["system:masters"])

    for _ in range(3):
        await control_plane.kubectl("get", "--raw", "/api/v1/nodes", kubeconfig=user)

    events = await control_plane.settled_audit_events(mark)
    assert audit.requests_of(events, "counted") == {("list", "nodes"): 3}
    assert audit.forbidden(events) == []


async def test_audit_log_shows_what_was_refused(control_plane: ControlPlane) -> None:
    """RBAC is on, and a hole in it can be found."""
    mark = control_plane.audit_mark()
    user = control_plane.kubeconfig_for_user("nobody-special")

    with pytest.raises(KubectlError, match="cannot list resource"):
        await control_plane.kubectl("get", "--raw", "/api/v1/secrets", kubeconfig=user)

    refused = audit.forbidden(await control_plane.settled_audit_events(mark), "nobody-special")
    assert [audit.resource_of(event) for event in refused] == ["secrets"]


async def test_node_authorizer_keeps_a_node_to_its_own(control_plane: ControlPlane) -> None:
    """A node identity has no say over another Node."""
    await control_plane.add_home_node("other")
    user = control_plane.kubeconfig_for_user("system:node:own", ["system:nodes"])

    with pytest.raises(KubectlError, match=r"Forbidden.*other"):
        await control_plane.kubectl("label", "node", "other", "a=b", kubeconfig=user)

    await control_plane.kubectl("delete", "node", "other")


async def test_node_restriction_is_on(control_plane: ControlPlane) -> None:
    """A node identity creates its own Node, but not with a label that admission reserves."""
    user = control_plane.kubeconfig_for_user("system:node:own", ["system:nodes"])
    reserved = NODE.replace("labels: {}", "labels: {node-restriction.kubernetes.io/a: b}")

    with pytest.raises(KubectlError, match="is not allowed to set the following labels"):
        await control_plane.kubectl("create", "-f", "-", input=reserved, kubeconfig=user)
    await control_plane.kubectl("create", "-f", "-", input=NODE, kubeconfig=user)

    await control_plane.kubectl("delete", "node", "own")


async def test_home_node_runs_a_deployment(control_plane: ControlPlane, namespace: str) -> None:
    """Controllers, scheduler and kwok together make pods run."""
    await control_plane.add_home_node("home-1", {"nvidia.com/gpu": "8"}, {"zone": "a"})

    await control_plane.kubectl("apply", "-n", namespace, "-f", "-", input=DEPLOYMENT)
    await control_plane.kubectl("rollout", "-n", namespace, "status", "deploy/web", "--timeout=60s")

    node = await control_plane.get_json("/api/v1/nodes/home-1")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    await control_plane.kubectl("delete", "-n", namespace, "deployment", "web", "--wait=false")
    await control_plane.kubectl("delete", "node", "home-1")


async def test_shipped_identity_has_its_rights_and_no_more(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The node under test gets a ServiceAccount with the RBAC of its manifests, nothing else."""
    (tmp_path / "all.yaml").write_text(IDENTITY)
    (tmp_path / "kustomization.yaml").write_text("resources: [all.yaml]")

    user = await identity.install(control_plane, tmp_path, namespace="shipped", name="node")

    who = await control_plane.kubectl("auth", "whoami", kubeconfig=user)
    assert "system:serviceaccount:shipped:node" in who
    await control_plane.kubectl("get", "nodes", kubeconfig=user)
    with pytest.raises(KubectlError, match="forbidden"):
        await control_plane.kubectl("get", "pods", kubeconfig=user)
    with pytest.raises(ApiError, match="404"):
        await control_plane.get_json("/api/v1/namespaces/shipped/configmaps/not-identity")
    await control_plane.kubectl("delete", "namespace", "shipped", "--wait=false")


async def test_api_server_restarts_on_its_port() -> None:
    """Its clients find it where it was, with what it knew."""
    async with ControlPlane() as bed:
        await bed.create_namespace("kept")

        await bed.restart_apiserver()

        await bed.get_json("/api/v1/namespaces/kept")
        await bed.create_namespace("new")


async def test_failed_start_says_why_and_leaves_nothing() -> None:
    """The end of the program's log is in the error."""
    bed = ControlPlane(apiserver_args=["--no-such-flag"])

    with pytest.raises(ProcessError, match="unknown flag: --no-such-flag"):
        await bed.__aenter__()

    await until_gone(bed.folder, set(bed.pids.values()))


async def test_sigkill_of_the_parent_leaves_nothing() -> None:
    """No process outlives a test run that was killed, and its folder goes."""
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.rig", "up"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    line = (await parent.stdout.readline()).decode()
    folder = Path(line.partition("=")[2].strip()).parent
    pids = mentioning(str(folder)) | mentioning(f"leash.py\0{parent.pid}\0")
    assert len(pids) == 5

    parent.kill()
    await parent.wait()

    await until_gone(folder, pids)


async def test_sigkill_of_the_leash_leaves_nothing() -> None:
    """Its processes die with it, and the bed removes the folder."""
    others = mentioning(f"leash.py\0{os.getpid()}\0")
    async with Processes() as bed:
        pid = await bed.start("program", FOREVER)
        (leash,) = mentioning(f"leash.py\0{os.getpid()}\0") - others
        os.kill(leash, signal.SIGKILL)

        async def dead() -> bool:
            return not runs(pid)

        await eventually(dead, "end of the program")
        with pytest.raises(ProcessError):
            await bed.wait("program")

    await until_gone(bed.folder, {pid})


async def test_sigkill_of_parent_and_leash_is_swept_by_the_next() -> None:
    """A folder that nobody holds any more is removed by the next leash to start."""
    script = (
        "import asyncio; from tests.rig.processes import Processes\n"
        "async def main():\n"
        "    async with Processes() as bed:\n"
        "        print(bed.folder, flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())"
    )
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    folder = Path((await parent.stdout.readline()).decode().strip())
    (leash,) = mentioning(f"leash.py\0{parent.pid}\0")
    os.kill(leash, signal.SIGKILL)
    parent.kill()
    await parent.wait()

    async with Processes():
        await until_gone(folder, {leash})


async def test_processes_are_killed_stopped_and_started_again() -> None:
    """What a test of the node's crash needs."""
    async with Processes() as bed:
        await bed.start("program", FOREVER)
        with pytest.raises(ProcessError, match="runs already"):
            await bed.start("program", FOREVER)

        assert await bed.kill("program") == -signal.SIGKILL
        await bed.start("program", FOREVER)
        assert await bed.stop("program") == -signal.SIGTERM
        assert await bed.wait("program") == -signal.SIGTERM


async def test_process_that_ignores_a_stop_is_killed() -> None:
    """The grace period ends."""
    async with Processes() as bed:
        await bed.start("deaf", DEAF)

        async def up() -> bool:
            return "up" in bed.log_tail("deaf")

        await eventually(up, "the deaf program")

        assert await bed.stop("deaf", grace=0.1) == -signal.SIGKILL


async def test_missing_program_is_an_error_of_its_start() -> None:
    """And of nothing else: the bed goes on."""
    async with Processes() as bed:
        with pytest.raises(ProcessError, match="cannot start none: FileNotFoundError"):
            await bed.start("none", ["./none"])

        await bed.start("program", FOREVER)


async def test_ports_are_reserved_until_closed() -> None:
    """Two beds never get the same one, and a server can listen on it."""
    with Ports() as one, Ports() as other:
        taken = [one.take() for _ in range(50)] + [other.take() for _ in range(50)]
        assert len(set(taken)) == 100

        server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", taken[0])
        server.close()
        await server.wait_closed()
