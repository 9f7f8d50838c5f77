"""Kubernetes' own end-to-end suite against the virtual node: `python -m tests.official`."""
