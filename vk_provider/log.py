"""Logging: short coloured lines for people, JSON lines for machines, and no secret in either.

Messages are written without secrets in the first place; :func:`scrub`, applied to each finished
line (tracebacks included), is the last line of defence.
Fed by every module's ``logging.getLogger(__name__)``; feeds stderr.
"""

from __future__ import annotations

import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

REDACTED = "[redacted]"
_SHORTEST_SECRET = 6
_secrets: set[str] = set()
_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {REDACTED}"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)?"), REDACTED),
    (re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"), REDACTED),
    (re.compile(r"(?i)([?&](?:api[_-]?key|access_token|token)=)[^&\s\"']+"), rf"\1{REDACTED}"),
    (
        re.compile(
            r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)"
        ),
        rf"\1 {REDACTED}",
    ),
)
_STANDARD = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
}
_LEVELS = {
    logging.DEBUG: ("DBG", "\x1b[2m"),
    logging.INFO: ("INF", "\x1b[32m"),
    logging.WARNING: ("WRN", "\x1b[33m"),
    logging.ERROR: ("ERR", "\x1b[31m"),
    logging.CRITICAL: ("CRT", "\x1b[1;31m"),
}
_TALKATIVE = ("aiohttp", "asyncio", "kubernetes", "urllib3", "hpack", "grpclib", "modal-client")
"""Libraries whose debug lines carry headers and bodies."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PLAIN = "\x1b[0m"
_DIM = "\x1b[2m"


def redact(value: str) -> None:
    """Register a secret: from now on it is never printed. Very short values are not registered,
    since they would be found in ordinary words."""
    if len(value.strip()) >= _SHORTEST_SECRET:
        _secrets.add(value.strip())


def scrub(text: str) -> str:
    """The text with registered secrets, tokens, passwords in URLs and private keys removed."""
    # Longest first, so that a secret that contains another one goes as a whole.
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


class HumanFormatter(logging.Formatter):
    """``15:04:05 INF loops.relist       message  key=value``."""

    def __init__(self, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """One aligned line, and the traceback below it."""
        word, shade = _LEVELS.get(record.levelno, (record.levelname[:3], ""))
        extra = _extra(record)
        moment = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        where = record.name.removeprefix("vk_provider.").removeprefix("vk_provider_")
        fields = "".join(f"  {key}={_printable(str(value))}" for key, value in extra.items())
        line = (
            f"{self._paint(moment, _DIM)} {self._paint(word, shade)} "
            f"{self._paint(f'{where:<18}', _DIM)} {_printable(record.getMessage())}"
            f"{self._paint(fields, _DIM)}"
        )
        if record.exc_info:
            line += _printable(f"\n{self.formatException(record.exc_info)}")
        return scrub(line)

    def _paint(self, text: str, shade: str) -> str:
        return f"{shade}{text}{_PLAIN}" if self._colour and shade and text else text


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ts, level, logger, msg, and every extra field."""

    def format(self, record: logging.LogRecord) -> str:
        """The object as one line."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, Any] = {
            "ts": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            # Before the encoding as well: a secret with a quote in it looks different afterwards.
            "msg": scrub(record.getMessage()),
        }
        for key, value in _extra(record).items():
            fields.setdefault(key, scrub(value) if isinstance(value, str) else value)
        if record.exc_info:
            fields["exception"] = scrub(self.formatException(record.exc_info))
        options = orjson.OPT_NON_STR_KEYS
        return scrub(orjson.dumps(fields, default=str, option=options).decode(errors="replace"))


def _printable(text: str) -> str:
    """Text from elsewhere on a terminal: no escape sequences, and no line that looks like ours."""
    return _CONTROL.sub("?", text.replace("\r\n", "\n")).replace("\n", "\n    ")


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in record.__dict__.items() if key not in _STANDARD}


def set_up(level: str = "info", style: str = "auto", stream: TextIO | None = None) -> None:
    """Send all logging to one stream (stderr), replacing what was set up before.

    ``style`` is ``human``, ``json``, or ``auto``: human on a terminal, JSON otherwise.
    """
    target = sys.stderr if stream is None else stream
    is_terminal = target.isatty()
    is_human = style == "human" or (style == "auto" and is_terminal)
    sink = logging.StreamHandler(target)
    sink.setFormatter(HumanFormatter(colour=is_terminal) if is_human else JsonFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(sink)
    root.setLevel(level.upper())
    for noisy in _TALKATIVE:
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLevelName(level.upper())))
