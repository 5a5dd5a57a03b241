# Shared by the scripts: a virtual environment in .venv, made once. Sourced, not run.

# A Python that omnijudge runs on; PYTHON names another one.
find_python() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3.12 python3.11 python3.13; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; then
            echo "$candidate"
            return
        fi
    done
    echo "omnijudge needs Python 3.11, 3.12 or 3.13; set PYTHON to one" >&2
    return 1
}

make_environment() {
    if [ ! -x .venv/bin/python ]; then
        local python
        python=$(find_python)
        if ! "$python" -m venv .venv; then
            echo "no virtual environment could be made; on Debian: apt-get install python3-venv" >&2
            return 1
        fi
    fi
}

# Changes when what has to be installed changes.
stamp() {
    cat pyproject.toml constraints.txt scripts/install_cpu_engine.sh | cksum
}
