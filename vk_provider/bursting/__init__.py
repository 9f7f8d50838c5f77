"""Training pushes, inference flows out and comes home: what is decided about it, without I/O."""
