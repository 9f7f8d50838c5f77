"""Command lines that a server's shell takes apart again word by word."""

from __future__ import annotations

import shlex

from vk_provider_runpod.remote_shell import MARK, end, enter


def test_every_word_arrives_as_it_is() -> None:
    """Whatever a shell would make of it."""
    command = ["echo", "it's", 'a "b"', "$HOME", "", "two\nlines", "`x`;&"]

    words = shlex.split(enter(command, "m1"))

    assert words[:3] == ["exec", "/bin/sh", "-c"]
    assert words[4:] == ["vk-provider", "m1", *command]


def test_the_script_takes_over_what_the_container_has() -> None:
    """Variables and folder of PID 1, and nothing of the login."""
    script = shlex.split(enter(["true"], "m1"))[3]

    assert "/proc/1/environ" in script
    assert "cd -P /proc/1/cwd" in script
    assert f'export {MARK}="$1"; shift; exec "$@"' in script
    assert "unset OLDPWD SSH_CLIENT SSH_CONNECTION" in script


def test_a_command_is_ended_by_its_mark_alone() -> None:
    """The mark is an argument of whoever looks, so that nobody finds himself."""
    words = shlex.split(end("m1"))

    assert words[-1] == f"{MARK}=m1"
    assert "m1" not in words[3]
