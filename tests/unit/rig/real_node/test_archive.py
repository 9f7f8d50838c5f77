"""Images as containerd takes them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from tests.rig.real_node.archive import Image, write


def test_an_image_is_one_layer_that_belongs_to_root(tmp_path: Path) -> None:
    """Whoever made it, and named by its content."""
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin/app").write_text("run")
    (root / "bin/app").chmod(0o6755)

    write(Image(("example/app:1",), ["/bin/app"], user="1234"), root, tmp_path / "app.tar")

    with tarfile.open(tmp_path / "app.tar") as archive:
        (manifest,) = json.loads(_member(archive, "manifest.json"))
        config = json.loads(_member(archive, manifest["Config"]))
        layer = _member(archive, manifest["Layers"][0])
    assert manifest["RepoTags"] == ["example/app:1"]
    assert config["config"]["Entrypoint"] == ["/bin/app"]
    assert config["config"]["User"] == "1234"
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as inner:
        member = inner.getmember("bin/app")
    assert (member.uid, member.uname, member.mode) == (0, "root", 0o6755)


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()
