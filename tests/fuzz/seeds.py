"""Where fuzzing begins: recorded peers, and one of everything."""

from __future__ import annotations

from tests.unit.wire import recorded

_RECORDED = (recorded.EXEC + recorded.CLOSE, recorded.TTY, recorded.FORWARD)
_RAW, _RAW_BYTE_BY_BYTE, _ACTS = b"\xff", b"\x01", b"\xfe"
# Error, stdin, stdout, stderr and resize, some input, its end, a window, settings, ping, goaway.
_EXEC = bytes(
    [0, 1, 0, 0, 3, 1, 0, 5, 2, 0, 7, 3, 0, 9, 4, 1, 3, 63, 1, 3, 64, 3, 5, 9, 4, 0, 7, 5, 0, 1]
)
_FORWARD = bytes([0, 1, 0, 1, 1, 64, 0, 3, 5, 1, 3, 63, 1, 3, 64, 2, 3, 5, 6, 1, 0, 7, 0, 0])

SEEDS: dict[str, list[bytes]] = {
    "spdy": [
        *(_RAW + one for one in _RECORDED),
        *(_RAW_BYTE_BY_BYTE + one for one in _RECORDED),
        _ACTS + _EXEC,
        _ACTS + _FORWARD,
        b"\x00" + _EXEC + _FORWARD,
    ],
    "messages": [
        bytes([mode]) + b'\x04\x00foo\x02\xff\x00\x1a\x04{"Width":80,"Height":24}\x050Zm9v'
        for mode in range(8)
    ],
}
