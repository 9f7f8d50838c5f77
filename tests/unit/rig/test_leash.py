"""What the leash removes at the end, and what it must not."""

from __future__ import annotations

from pathlib import Path

from tests.rig.leash import mounts_below, remove

MOUNTS = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/root rw
40 22 0:30 / /tmp/vk-rig-a/kubelet/pods/1/volumes/a\040b rw - tmpfs tmpfs rw
41 40 254:0 /etc /tmp/vk-rig-a/kubelet/pods/1/volumes/a\040b/etc rw - ext4 /dev/root rw
42 22 0:31 / /tmp/vk-rig-abc/state rw - tmpfs tmpfs rw
""".strip()


def test_mounts_are_found_by_their_real_names() -> None:
    """Those of this folder alone, in the order of mounting."""
    volume = "/tmp/vk-rig-a/kubelet/pods/1/volumes/a b"

    assert mounts_below(Path("/tmp/vk-rig-a"), MOUNTS) == [volume, f"{volume}/etc"]


def test_a_folder_without_mounts_goes_as_a_whole(tmp_path: Path) -> None:
    """With all that is in it."""
    bed = tmp_path / "bed"
    (bed / "etcd").mkdir(parents=True)

    remove(bed)

    assert not bed.exists()
