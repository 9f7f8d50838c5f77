"""Where credentials come from, and how they stay fresh."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from vk_provider.faults import ConfigError
from vk_provider.kube.client import KubeClient
from vk_provider.kube.credentials import choose_source, load_credentials
from vk_provider.kube.identity import Credentials, Loaded, Source, in_cluster
from vk_provider.kube.tls_material import TlsMaterial

SECRET = "s3cr3t-token"


def certificate(name: str) -> tuple[bytes, bytes]:
    """A self-signed certificate for 127.0.0.1's name, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return signed.public_bytes(pem), private


def kubeconfig(
    folder: Path, user: dict[str, Any], server: str = "http://127.0.0.1:1", **cluster: Any
) -> Path:
    """A kubeconfig with one context."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "bare", "context": {"cluster": "c"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return path


def plugin(folder: Path, answer: dict[str, Any], code: int = 0) -> dict[str, Any]:
    """An exec plugin that counts its runs in a file and prints this status."""
    script = folder / "plugin"
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    printed = json.dumps({**credential, "status": answer})
    script.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(folder / 'runs')!r}, 'a').write('x')\n"
        f"print({printed!r})\nprint('told to fail', file=sys.stderr)\nsys.exit({code})\n"
    )
    script.chmod(0o755)
    return {"exec": {"apiVersion": credential["apiVersion"], "command": "./plugin"}}


def later(seconds: float) -> str:
    """A timestamp as a plugin writes it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def impatient(source: Source) -> Credentials:
    """Credentials that read their source again at every use."""
    loaded = await source(False)
    return Credentials(source, loaded, reread_seconds=0, refresh_pause_seconds=0)


async def test_a_token(tmp_path: Path) -> None:
    """Server, namespace and header; the token is never shown."""
    found = await load_credentials(kubeconfig(tmp_path, {"token": SECRET}))

    assert found.server == "http://127.0.0.1:1"
    assert found.namespace == "team"
    assert await found.headers() == {"Authorization": f"Bearer {SECRET}"}
    assert SECRET not in repr(found)


async def test_another_context(tmp_path: Path) -> None:
    """Named by the caller; without a user there is nothing to say who we are."""
    found = await load_credentials(kubeconfig(tmp_path, {"token": SECRET}), "bare")

    assert await found.headers() == {}
    assert found.namespace == "default"


async def test_a_token_file_rotates(tmp_path: Path) -> None:
    """Relative to the kubeconfig; a file wins over a literal."""
    (tmp_path / "token").write_text("one\n")
    path = kubeconfig(tmp_path, {"token": "x", "tokenFile": "token"})
    found = await impatient(choose_source(path, None, {}))
    before = await found.headers()
    (tmp_path / "token").write_text("two\n")

    assert before == {"Authorization": "Bearer one"}
    assert await found.headers() == {"Authorization": "Bearer two"}


async def test_a_file_that_is_away_for_a_moment_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What we have may serve for a while; the log says what is wrong."""
    (tmp_path / "token").write_text("one")
    path = kubeconfig(tmp_path, {"tokenFile": "token"})
    found = await impatient(choose_source(path, None, {}))
    (tmp_path / "token").unlink()

    assert await found.headers() == {"Authorization": "Bearer one"}
    assert "keeping the old" in caplog.text


async def test_an_exec_plugin_is_run_again_before_its_answer_expires(tmp_path: Path) -> None:
    """A long-lived answer is kept, a short-lived one renewed."""
    runs = tmp_path / "runs"
    user = plugin(tmp_path, {"token": "t", "expirationTimestamp": later(3600)})
    found = await impatient(choose_source(kubeconfig(tmp_path, user), None, {}))
    await found.headers()
    assert runs.read_text() == "x"

    await found.refresh()
    assert runs.read_text() == "xx"

    plugin(tmp_path, {"token": "short", "expirationTimestamp": later(30)})
    await found.refresh()
    assert await found.headers() == {"Authorization": "Bearer short"}
    assert runs.read_text() == "xxxx"


async def test_an_exec_plugin_may_answer_a_certificate(tmp_path: Path) -> None:
    """It goes into the TLS context; the key never touches the disk."""
    public, private = certificate("client")
    answer = {"clientCertificateData": public.decode(), "clientKeyData": private.decode()}
    user = plugin(tmp_path, answer)

    found = await load_credentials(kubeconfig(tmp_path, user, "https://127.0.0.1:1"))

    assert isinstance(found.ssl, ssl.SSLContext)
    assert await found.headers() == {}


@pytest.mark.parametrize(
    ("answer", "code", "expected"),
    [
        ({}, 0, "neither status.token nor"),
        ({"token": SECRET}, 3, "process returned 3.*told to fail"),
        ({"token": SECRET, "expirationTimestamp": "soon"}, 0, "isoformat"),
    ],
)
async def test_a_plugin_that_fails_says_why(
    tmp_path: Path, answer: dict[str, Any], code: int, expected: str
) -> None:
    """In its own words, without what it printed."""
    with pytest.raises(ConfigError, match=expected) as caught:
        await load_credentials(kubeconfig(tmp_path, plugin(tmp_path, answer, code)))

    assert SECRET not in str(caught.value)


async def test_a_plugin_that_is_not_installed_names_its_hint(tmp_path: Path) -> None:
    """The kubeconfig's author knew what to do."""
    user = {"exec": {"apiVersion": "v1", "command": "no-such-plugin", "installHint": "get it"}}

    with pytest.raises(ConfigError, match=r"no-such-plugin: No such file.*get it"):
        await load_credentials(kubeconfig(tmp_path, user))


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"auth-provider": {"name": "gcp"}}, "exec plugin"),
        ({"username": "u", "password": "p"}, "token or certificate"),
        ({"as-groups": ["g"]}, "impersonation"),
        ({"token": "two\nlines"}, "Authorization can't be sent"),
        ({"client-certificate": "absent.pem"}, "absent.pem"),
        ({"client-certificate-data": "%%%"}, "kubeconfig"),
        ({"client-certificate-data": "eA=="}, "go together"),
        ({"client-certificate-data": "eA==", "client-key-data": "eA=="}, "PEM is wanted"),
    ],
)
async def test_what_cannot_be_used_says_what_to_do(
    tmp_path: Path, user: dict[str, Any], expected: str
) -> None:
    """Nothing is ignored silently: we would be somebody else."""
    with pytest.raises(ConfigError, match=expected):
        await load_credentials(kubeconfig(tmp_path, user, "https://127.0.0.1:1"))


async def test_impersonation(tmp_path: Path) -> None:
    """``as`` is a header."""
    found = await load_credentials(kubeconfig(tmp_path, {"token": "t", "as": "jane"}))

    assert (await found.headers())["Impersonate-User"] == "jane"


@pytest.mark.parametrize("text", ["", "[]", "a: [", "{apiVersion: v1}"])
async def test_a_broken_kubeconfig_names_the_file(tmp_path: Path, text: str) -> None:
    """Empty, a list, no YAML, nothing in it."""
    path = tmp_path / "config"
    path.write_text(text)

    with pytest.raises(ConfigError, match=str(path)):
        await load_credentials(path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"clusters": 5}, "not of the shape"),
        ({"contexts": [5]}, "not of the shape"),
        ({"users": [{"name": "u", "token": SECRET}]}, "Expected key user in .*/u$"),
        ({"users": [{"name": "u", "user": {"exec": 5}}]}, "not of the shape"),
        ({"users": [{"name": "u", "user": {"exec": {"token": SECRET}}}]}, "key command"),
        ({"users": [{"name": "u", "user": {"client-key-data": SECRET}}]}, "client-key-data: .*64"),
        ({"clusters": [{"name": "c", "cluster": {"server": 5}}]}, "server: found 5, allowed: http"),
        ({"clusters": [{"name": "c", "cluster": {"server": "https://[::1"}}]}, "server: found"),
        ({"clusters": [{"name": "c", "cluster": {"server": "https://a:99999"}}]}, "server: found"),
    ],
)
async def test_an_entry_of_another_shape_is_one_sentence_without_a_secret(
    tmp_path: Path, change: dict[str, Any], expected: str
) -> None:
    """A token one level too high is a usual mistake, and its sentence may be pasted anywhere."""
    path = kubeconfig(tmp_path, {})
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))

    with pytest.raises(ConfigError, match=expected) as caught:
        await load_credentials(path)
    assert str(path) in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"users:\n- {{name: u, user: {{token: {SECRET}}}: x]\n", ":2: not YAML"),
        (f"users:\n- {{name: u, user: {{token: *{SECRET}}}}}\n", ":2: not YAML"),
        (f"users:\n- {{name: u, user: {{token: !{SECRET} x}}}}\n", ":2: not YAML"),
        ("[" * 2000, ": nested too deeply"),
    ],
)
async def test_a_kubeconfig_that_is_no_yaml_does_not_show_its_lines(
    text: str, expected: str, tmp_path: Path
) -> None:
    """The broken line may hold a token."""
    path = tmp_path / "config"
    path.write_text(text)

    with pytest.raises(ConfigError, match=f"{path}{expected}") as caught:
        await load_credentials(path)
    assert SECRET not in str(caught.value)


async def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    """A typo in ``--context``."""
    with pytest.raises(ConfigError, match="nowhere"):
        await load_credentials(kubeconfig(tmp_path, {}), "nowhere")


async def test_no_kubeconfig_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default place, or what the environment names."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=r"\.kube/config.*--kubeconfig"):
        await load_credentials(None)

    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, {"token": "t"})))
    assert (await load_credentials(None)).namespace == "team"


async def test_in_a_pod_the_mounted_token_rotates(tmp_path: Path) -> None:
    """Token, CA and namespace as the kubelet mounts them; an IPv6 address gets its brackets."""
    public, _ = certificate("kubernetes")
    (tmp_path / "ca.crt").write_bytes(public)
    (tmp_path / "namespace").write_text("team")
    (tmp_path / "token").write_text("one")
    source = in_cluster(
        tmp_path, {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    )
    found = await impatient(source)
    context = found.ssl
    (tmp_path / "token").write_text("two")

    assert await found.headers() == {"Authorization": "Bearer two"}
    assert found.server == "https://[fd00::1]:6443"
    assert found.namespace == "team"
    assert found.ssl is context

    (tmp_path / "ca.crt").write_bytes(certificate("another")[0])
    await found.headers()
    assert found.ssl is not context


async def test_a_pod_without_a_mounted_token_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A common mistake, named."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    source = in_cluster(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})

    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        await source(False)
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        await load_credentials(None)


async def test_many_refusals_are_one_reading() -> None:
    """A hundred calls meet 401 at once; the plugin is run once."""
    readings = 0

    async def source(_: bool) -> Loaded:
        nonlocal readings
        readings += 1
        await asyncio.sleep(0.01)
        return Loaded("http://x", "default", TlsMaterial(plain=True))

    found = Credentials(source, await source(False), refresh_pause_seconds=0.2)
    await asyncio.sleep(0.3)
    await asyncio.gather(*(found.refresh() for _ in range(100)))

    assert readings == 2


@asynccontextmanager
async def tls_server(public: bytes, private: bytes, folder: Path) -> AsyncIterator[str]:
    """An HTTPS server that demands this very certificate from its client, too."""
    (folder / "server.pem").write_bytes(public + private)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=public.decode())
    context.load_cert_chain(folder / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        return web.json_response({"subject": peer["subject"][0][0][1]})

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("trust", ["tls-server-name", "insecure-skip-tls-verify"])
async def test_a_client_certificate_over_real_tls(tmp_path: Path, trust: str) -> None:
    """As data in the kubeconfig; the server's certificate has another name than its address."""
    public, private = certificate("api.example")
    encoded = base64.b64encode(public).decode()
    user = {
        "client-certificate-data": encoded,
        "client-key-data": base64.b64encode(private).decode(),
    }
    options: dict[str, Any] = {"insecure-skip-tls-verify": True}
    if trust == "tls-server-name":
        options = {"tls-server-name": "api.example", "certificate-authority-data": encoded}

    async with tls_server(public, private, tmp_path) as server:
        found = await load_credentials(kubeconfig(tmp_path, user, server, **options))
        async with KubeClient(found) as client:
            assert await client.get("/api/v1/whoami") == {"subject": "api.example"}
