"""Language models: checkpoints, tokenizers, reference arithmetic, and the graphs that are compiled of them."""
