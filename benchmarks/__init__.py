"""Measurements against other generators and runtimes: `python -m benchmarks` lists and runs them."""
