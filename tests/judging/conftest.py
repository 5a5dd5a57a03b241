"""One tiny model and one engine for all tests that need a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from requirements import need

from omnijudge.config import JudgeConfig
from omnijudge.judging.engines import open_engine

if TYPE_CHECKING:
    from omnijudge.judging.types import Engine


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the tiny random-weight model."""
    need("engine")
    from omnijudge.testing.tiny_model import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def tiny_judge(tiny_model: Path) -> JudgeConfig:
    """A judge with the tiny model, in full precision so that answers repeat exactly."""
    return JudgeConfig(engine="vllm", model=str(tiny_model), engine_options={"dtype": "float32"})


@pytest.fixture(scope="session")
def tiny_engine(tiny_judge: JudgeConfig) -> Iterator[Engine]:
    """A running vLLM engine with the tiny model."""
    # A run has often compiled its kernels before it opens an engine in the same process.
    import numba  # noqa: F401

    engine = open_engine(tiny_judge, "omniinteract")
    yield engine
    engine.close()
