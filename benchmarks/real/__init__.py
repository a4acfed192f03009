"""The parts of `python -m benchmarks real_models`."""
