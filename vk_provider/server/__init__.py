"""I/O. The kubelet's HTTPS surface, and the plain port for metrics and health."""
