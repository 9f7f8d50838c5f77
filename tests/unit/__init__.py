"""Suites without sockets and sleeps, one file per module."""
