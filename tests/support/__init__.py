"""Servers that speak a real protocol badly on purpose, shared by the suites."""
