"""The parts of `python -m benchmarks fuzz`. Generators and reduction are those of the tests."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))
