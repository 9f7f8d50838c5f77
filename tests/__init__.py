"""The suites, and the rig that gives them a real control plane."""
