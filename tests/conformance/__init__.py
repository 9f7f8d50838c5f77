"""The official suites, run against our node: `python -m tests.conformance`."""
