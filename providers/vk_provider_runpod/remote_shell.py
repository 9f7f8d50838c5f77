"""The command lines that an SSH server is asked to run, so that a command runs as in its container.

Pure. A login over SSH has neither the container's variables nor its working directory: both are
PID 1's, from whom they are taken. Each command carries a mark in its environment, by which a second
command finds and ends it with all that it has started: SSH servers leave that undone.
Fed by ``commands``; read by any POSIX shell with ``tr`` and ``sed``.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

MARK = "VK_PROVIDER_EXEC"

# A shell keeps these to itself, and some end at the attempt to set them.
_SHELLS_OWN = (
    "UID", "EUID", "PPID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO", "PWD", "OLDPWD", "SHLVL", "_",
)  # fmt: skip
_SKIPPED = " ".join(f"-e '/^{name}=/d'" for name in _SHELLS_OWN)
# NUL ends a variable there, and a value may hold newlines: each becomes the other for a while.
_VARIABLES = (
    r"tr '\000\n' '\n\001' < /proc/1/environ | "
    rf"LC_ALL=C sed -n {_SKIPPED} "
    r"""-e "s/'/'\\\\''/g" """
    r"""-e "s/^\([A-Za-z_][A-Za-z0-9_]*\)=\(.*\)$/export \1='\2'/p" | """
    r"tr '\001' '\n'"
)
_ENTER = (
    # Whoever is not root may not look at PID 1, and has to do with what the login gives.
    f'eval "$( {{ {_VARIABLES}; }} 2>/dev/null)"; '
    "cd -P /proc/1/cwd 2>/dev/null || :; "
    "unset OLDPWD SSH_CLIENT SSH_CONNECTION SSH_TTY SSH_ORIGINAL_COMMAND SSH_PUBKEYINFO; "
    f'export {MARK}="$1"; shift; exec "$@"'
)
# Children have the mark as well. Whoever looks has it as an argument only, not as a variable.
_END = (
    'for signal in HUP KILL; do for each in $(grep -ls "$1" /proc/[0-9]*/environ 2>/dev/null); do '
    'each=${each#/proc/}; kill -s "$signal" "${each%/environ}" 2>/dev/null; done; sleep 0.1; done'
)


def enter(command: Sequence[str], mark: str) -> str:
    """Run a command with the variables and in the folder of the container, under a mark."""
    return _line(_ENTER, mark, *command)


def end(mark: str) -> str:
    """End whatever runs under a mark."""
    return _line(_END, f"{MARK}={mark}")


def aside(script: str) -> str:
    """Run a script of ours, in no container's name."""
    return _line(script)


def _line(script: str, *words: str) -> str:
    # `exec`, so that a signal that ends the command is the server's own child's, and is reported.
    return shlex.join(["exec", "/bin/sh", "-c", script, "vk-provider", *words])
