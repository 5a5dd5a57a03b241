"""The packaging rules: three import packages, a free name `kernels`, cheap imports."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from requirements import need

ROOT = Path(__file__).parents[2]
HEAVY = {"numba", "ray", "torch", "vllm", "pandas", "altair", "matplotlib", "scipy", "transformers"}


def python(code: str, cwd: Path) -> str:
    """Output of a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def loaded_by(statement: str, cwd: Path) -> set[str]:
    """Top-level modules that a statement loads."""
    names = "{m.split('.')[0] for m in sys.modules}"
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted({names})))"
    return set(json.loads(python(code, cwd).splitlines()[-1]))


def test_one_distribution_ships_three_packages(tmp_path: Path) -> None:
    code = "import omnijudge, omnijudge_kernels, omnijudge_ray; print('ok')"
    assert python(code, tmp_path) == "ok"
    assert distribution("omnijudge").metadata["License-Expression"] == "Apache-2.0"


def test_no_module_is_named_kernels(tmp_path: Path) -> None:
    """The name belongs to another distribution, which transformers imports where it is present."""
    code = (
        "from importlib.util import find_spec; print(find_spec('kernels'), find_spec('ray_jobs'))"
    )
    assert python(code, tmp_path) == "None None"


@pytest.mark.ray
def test_no_module_is_named_kernels_in_a_ray_worker(tmp_path: Path) -> None:
    need("ray")
    code = """
import ray
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
@ray.remote
def found():
    from importlib.util import find_spec
    import omnijudge_ray
    return find_spec("kernels") is None
print(ray.get(found.remote()))
"""
    assert python(code, tmp_path).splitlines()[-1] == "True"


def test_top_folders_are_no_packages() -> None:
    assert not (ROOT / "kernels" / "__init__.py").exists()
    assert not (ROOT / "ray_jobs" / "__init__.py").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "import omnijudge",
        "import omnijudge_kernels",
        "import omnijudge.benchmarks.omniinteract",
        "import omnijudge.cli; omnijudge.cli.parser()",
    ],
)
def test_imports_are_light(statement: str, tmp_path: Path) -> None:
    assert not loaded_by(statement, tmp_path) & HEAVY


def test_imports_point_one_way() -> None:
    """kernels <- omnijudge <- ray_jobs."""
    for file in (ROOT / "kernels").rglob("*.py"):
        assert "import omnijudge." not in file.read_text(encoding="utf-8"), file
        assert "from omnijudge." not in file.read_text(encoding="utf-8"), file
    for file in (ROOT / "omnijudge").rglob("*.py"):
        lines = file.read_text(encoding="utf-8").splitlines()
        assert not any(
            x.startswith(("import omnijudge_ray", "from omnijudge_ray")) for x in lines
        ), file


def test_every_name_of_the_package_is_there(tmp_path: Path) -> None:
    code = "import omnijudge; print([n for n in omnijudge.__all__ if not hasattr(omnijudge, n)])"
    assert python(code, tmp_path) == "[]"


def test_the_tests_do_not_take_the_name_kernels_either() -> None:
    from importlib.util import find_spec

    assert find_spec("kernels") is None
