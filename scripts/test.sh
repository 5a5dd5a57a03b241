#!/usr/bin/env bash
# The tests: format, lint, types, then pytest. --all adds the slow ones; further words go to pytest.
# OMNIJUDGE_REQUIRE=engine,ray makes the vLLM engine and Ray a must; without it, tests that need
# what is not there are skipped and say so.
set -euo pipefail
cd "$(dirname "$0")/.."

selection=()
if [ "${1:-}" = "--all" ]; then
    selection=(-m "")
    shift
fi

. scripts/environment.sh
make_environment
python=.venv/bin/python
if [ "$(stamp)" != "$(cat .venv/.installed-dev 2>/dev/null || true)" ]; then
    echo "installing omnijudge with the test extras"
    # The engine first: it decides the versions of torch and numba.
    engine=0
    bash scripts/install_cpu_engine.sh "$python" || engine=$?
    if [ "$engine" -ne 0 ]; then
        case ",${OMNIJUDGE_REQUIRE:-}," in
        *,engine,*)
            echo "the engine is required (OMNIJUDGE_REQUIRE) and could not be installed" >&2
            exit "$engine"
            ;;
        esac
        echo "going on without the engine; its tests are skipped" >&2
    fi
    "$python" -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,ray,media,stats,service,s3]'
    # Installed again by other packages, these would not match torch.
    if [ "$engine" -eq 0 ]; then
        bash scripts/install_cpu_engine.sh "$python"
    fi
    stamp > .venv/.installed-dev
    stamp > .venv/.installed-core
fi

.venv/bin/ruff format --check .
.venv/bin/ruff check .
.venv/bin/mypy
if [ "$#" -gt 0 ] || [ "${#selection[@]}" -gt 0 ]; then
    exec .venv/bin/pytest "${selection[@]}" "$@"
fi
# Two at a time what leaves the machine to others; one by one what kills, waits and needs memory.
alone=(tests/judging tests/pipeline tests/scripts)
failed=()
echo "tests, part 1 of 3: two at a time"
.venv/bin/pytest -n 2 --dist loadfile -m "not slow and not engine and not ray" \
    "${alone[@]/#/--ignore=}" || failed+=(1)
echo "tests, part 2 of 3: with an engine or Ray"
.venv/bin/pytest -m "not slow and (engine or ray)" "${alone[@]/#/--ignore=}" || failed+=(2)
echo "tests, part 3 of 3: ${alone[*]}"
.venv/bin/pytest "${alone[@]}" || failed+=(3)
if [ "${#failed[@]}" -gt 0 ]; then
    echo "failed: part ${failed[*]} of the tests" >&2
    exit 1
fi
