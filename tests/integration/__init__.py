"""Suites over real sockets on the loopback."""
