"""A real kubelet with containerd and runc on a test bed, enclosed so that nothing of it is left.

python -m tests.official uses it: see `enclosure.py` for how the machine stays as it was.
"""
