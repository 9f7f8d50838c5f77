"""The start wrapper's script, run by a real shell."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from vk_provider_runpod.config import RunPodConfig
from vk_provider_runpod.translate import translate

from vk_provider.pods.references import ObjectKey
from vk_provider.pods.types import IMPLICIT_OFFER
from vk_provider.testing.builders import make_container, make_resolved_pod

CONTENT = 'a "quoted" $VALUE\nand a second line, grün €\n'


def test_files_are_written_and_the_command_takes_over(tmp_path: Path) -> None:
    """With their modes, in folders that were not there, and without a trace in the env."""
    config = RunPodConfig(None, files_wrapper=True)
    mounts = [
        {"name": "conf", "mountPath": f"{tmp_path}/etc/the app"},
        {"name": "scratch", "mountPath": f"{tmp_path}/scratch"},
    ]
    key = ObjectKey("Secret", "default", "settings")
    command = ["sh", "-c", 'printf "%s|" "$0" "$@" "${VK_PROVIDER_FILES-gone}"', "a b", 'c"d']
    pod = make_resolved_pod(
        containers=[make_container(command=command, args=["e"], volumeMounts=mounts)],
        volumes=[
            {"name": "conf", "secret": {"secretName": "settings", "defaultMode": 0o400}},
            {"name": "scratch", "emptyDir": {}},
        ],
        objects={key: {"stringData": {"app.ini": CONTENT, "empty": ""}}},
    )
    body = translate(pod, IMPLICIT_OFFER, config).body
    words = json.loads(body["args"])

    done = subprocess.run(
        [*words["entrypoint"], *words["cmd"]],
        env={"PATH": os.environ["PATH"], **body["env"]},
        capture_output=True,
        check=True,
        text=True,
    )

    written = tmp_path / "etc" / "the app" / "app.ini"
    assert done.stdout == 'a b|c"d|e|gone|'
    assert written.read_text() == CONTENT
    assert written.stat().st_mode & 0o777 == 0o400
    assert (written.parent / "empty").read_text() == ""
    assert (tmp_path / "scratch").is_dir()
