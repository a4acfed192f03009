"""Addresses: buffers packed into memories, by heuristics first and by exact search where they fall short."""
