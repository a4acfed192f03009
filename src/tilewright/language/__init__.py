"""Language models: checkpoints, tokenizers, reference arithmetic, and the graphs that are compiled of them."""

COLDEST, HOTTEST = 0.05, 10.0
"""Temperatures besides 0. Here, so that the command line knows them without numpy."""
PREFILL = 64
"""Tokens of a prompt that are read at once."""
