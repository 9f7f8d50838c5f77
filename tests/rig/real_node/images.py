"""The images of the official suite, made here: no registry is asked for them.

agnhost and nonewprivs are the release's own programs; busybox, nginx, bash and curl come from
Debian. Fed by `builds`, `busybox` and `apt`; kept in the cache under a key of all of that; feeds
`container_runtime` with archives.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from tests.rig import builds
from tests.rig.cache import build_lock, cache_folder
from tests.rig.pki import Authority
from tests.rig.progress import say
from tests.rig.real_node import archive, busybox
from tests.rig.real_node.apt import Apt, run
from tests.rig.real_node.archive import Image
from tests.rig.real_node.roots import Root

PAUSE = "registry.k8s.io/pause:3.10.2"
_SUITE = "registry.k8s.io/e2e-test-images"
_HERE = Path(__file__).parent
_AGNHOST_USER = (
    "user-defined-in-image:x:1000:1000:Linux User,,,:/home/user-defined-in-image:/bin/sh\n"
)
_AGNHOST_GROUP = (
    "user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"
)
_NGINX = """\
user nginx;
worker_processes 1;
pid /run/nginx.pid;
error_log /dev/stderr notice;
events { worker_connections 256; }
http {
  access_log /dev/stdout;
  default_type text/html;
  server { listen 80; location / { root /usr/share/nginx/html; index index.html; } }
}
"""


def archives(version: str) -> list[Path]:
    """The archives of all images, making them first if the cache lacks them.

    `version` is the Kubernetes release whose agnhost is in them.
    """
    programs = builds.build_all(["agnhost", "nonewprivs"], version)
    target = cache_folder() / "bin" / f"images-{_key(programs)}"
    if not target.exists():
        with build_lock():
            if not target.exists():  # another process may have made them while we waited
                _make(programs, target)
    return sorted(target.glob("*.tar"))


def _key(programs: dict[str, Path]) -> str:
    digest = hashlib.sha256()
    for name in ("apt.py", "archive.py", "busybox.py", "images.py", "pause.c", "roots.py"):
        digest.update((_HERE / name).read_bytes())
    for path in programs.values():
        digest.update(str(path.relative_to(cache_folder())).encode())
    return digest.hexdigest()[:12]


def _make(programs: dict[str, Path], target: Path) -> None:
    say("making the suite's images (once; two minutes)")
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="vk-images-") as folder:
        _Maker(Path(folder), partial, programs).make()
    partial.rename(target)


class _Maker:
    """All images, one after the other."""

    def __init__(self, work: Path, target: Path, programs: dict[str, Path]) -> None:
        self.work = work
        self.target = target
        self.programs = programs
        self.apt = Apt(work / "apt")

    def make(self) -> None:
        """Make and write all of them."""
        self.apt.update()
        self.busybox = busybox.build(self.apt, self.work)
        self._pause()
        self._plain()
        self._glibc()
        self._nonewprivs()
        self._agnhost()
        self._nginx()

    def _pause(self) -> None:
        root = Root(self.work / "pause")
        run(
            ["gcc", "-static", "-Os", "-s", "-o", root.folder / "pause", _HERE / "pause.c"],
            self.work,
        )
        self._write("pause", root, Image((PAUSE,), ["/pause"], user="65535:65535"))

    def _plain(self) -> None:
        root = Root(self.work / "busybox")
        root.add_busybox(self.busybox)
        self._write("busybox", root, Image((f"{_SUITE}/busybox:1.37.0-1",), command=["sh"]))
        user = Image((f"{_SUITE}/nonroot:1.5",), command=["sh"], user="1234")
        self._write("nonroot", root, user)

    def _glibc(self) -> None:
        """A shell whose `hostname` asks the C library, as most images' do."""
        root = Root(self.work / "glibc")
        root.add_busybox(self.busybox)
        for name in ("dash", "getent", "hostname"):
            root.put_linked(Path(str(shutil.which(name))), f"bin/{name}")
        (root.folder / "bin/sh").unlink()
        (root.folder / "bin/sh").symlink_to("dash")
        image = Image((f"{_SUITE}/glibc-dns-testing:2.0.0",), command=["sh"])
        self._write("glibc", root, image)

    def _nonewprivs(self) -> None:
        root = Root(self.work / "nonewprivs")
        root.put(self.programs["nonewprivs"], "usr/local/bin/nnp", mode=0o6755)
        self._write("nonewprivs", root, Image((f"{_SUITE}/nonewprivs:1.4",), command=["nnp"]))

    def _agnhost(self) -> None:
        root = Root(self.work / "agnhost")
        root.add_busybox(self.busybox)
        root.put(self.programs["agnhost"], "agnhost")
        (root.folder / "agnhost-2").symlink_to("agnhost")
        (root.folder / "uploads").mkdir()
        self._certificate(root)
        root.append("etc/passwd", _AGNHOST_USER)
        root.append("etc/group", _AGNHOST_GROUP)
        for name in ("bash", "curl"):
            root.put_linked(Path(str(shutil.which(name))), f"usr/bin/{name}")
        (root.folder / "bin/bash").unlink(missing_ok=True)
        (root.folder / "bin/bash").symlink_to("/usr/bin/bash")
        names = tuple(f"{_SUITE}/agnhost:{tag}" for tag in ("2.63.0", "2.55"))
        self._write("agnhost", root, Image(names, ["/agnhost"], ["pause"]))

    def _certificate(self, root: Root) -> None:
        """What its web server presents where a spec wants TLS; nobody verifies it."""
        folder = self.work / "pki"
        folder.mkdir()
        pair = Authority(folder).issue("localhost", "localhost", hosts=["localhost", "127.0.0.1"])
        root.put(pair.certificate, "localhost.crt", mode=0o644)
        root.put(pair.key, "localhost.key", mode=0o644)

    def _nginx(self) -> None:
        unpacked = self.apt.unpack(["nginx"])
        root = Root(self.work / "nginx")
        root.add_busybox(self.busybox)
        for folder in ("var/lib/nginx", "var/log/nginx"):
            (root.folder / folder).mkdir(parents=True)
        root.put_linked(unpacked / "usr/sbin/nginx", "usr/sbin/nginx")
        root.append("etc/passwd", "nginx:x:101:101::/:/bin/false\n")
        root.append("etc/group", "nginx:x:101:\n")
        root.write("etc/nginx/nginx.conf", _NGINX)
        root.write("usr/share/nginx/html/index.html", "<h1>Welcome to nginx!</h1>\n")
        names = tuple(f"{_SUITE}/nginx:{tag}" for tag in ("1.15-4", "1.27-0"))
        self._write("nginx", root, Image(names, ["nginx"], ["-g", "daemon off;"]))

    def _write(self, name: str, root: Root, image: Image) -> None:
        archive.write(image, root.folder, self.target / f"{name}.tar")
