"""A whole small world around the lifecycle, moved by hypothesis."""
