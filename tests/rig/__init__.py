"""The test bed: a real Kubernetes control plane on one machine, built from source.

Start with `tests.rig.control_plane.ControlPlane`; `python -m tests.rig --help` is the command line.
"""
