"""The demo: a Deployment on a node that does not exist, on a real control plane.

``make demo``, or ``python -m tests.demo``. It shows each step and asserts it: exit code 0 only if
everything it shows is true.
"""
