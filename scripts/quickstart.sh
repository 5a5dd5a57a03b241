#!/usr/bin/env bash
# The first run: makes .venv, installs omnijudge, scores the sample data with the smoke judge.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/environment.sh
make_environment
if ! .venv/bin/python -c "import omnijudge" 2>/dev/null || [ "$(stamp)" != "$(cat .venv/.installed-core 2>/dev/null)" ]; then
    echo "installing omnijudge (once)"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
    stamp > .venv/.installed-core
fi
exec .venv/bin/omnijudge run configs/quickstart.yaml
