"""Help for testing judges and benchmarks, ours and those from outside.

``check_benchmark`` and ``check_engine`` are for the test suite of a plug-in::

    from omnijudge.config import JudgeConfig, load_config
    from omnijudge.testing import check_benchmark, check_engine

    def test_my_benchmark():
        check_benchmark(my_benchmark, load_config("tests/data/config.yaml"))

    def test_my_engine():
        check_engine(MyEngine, JudgeConfig(engine="mine", model="..."))

Each raises AssertionError with a sentence that says what the plug-in does and what is expected.
"""

from omnijudge.testing.benchmark_checks import check_benchmark
from omnijudge.testing.engine_checks import check_engine

__all__ = ["check_benchmark", "check_engine"]
