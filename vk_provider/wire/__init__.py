"""PURE, sans-I/O. The kubelet API's byte formats: feed bytes, get events."""
