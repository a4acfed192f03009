"""Language models: checkpoints, tokenizers, reference arithmetic, and the graphs that are compiled of them."""

COLDEST, HOTTEST = 0.05, 10.0
"""Temperatures besides 0. Here, so that the command line knows them without numpy."""
CONTEXT = 256
"""Tokens that a decoder remembers whose file leaves that open."""
PREFILL = 64
"""Tokens of a prompt that are read at once."""
