"""The chooser: either way the same answer, and small inputs never import Numba."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from naive import kernels as naive
from numba_kernels.matching_cases import csr_times, offsets, random_instance

from omnijudge_kernels import choose, masks

COMPILED = {
    "assign": "omnijudge_kernels.slots",
    "window_ranges": "omnijudge_kernels.windows",
    "match_ordered_pairs": "omnijudge_kernels.matching",
    "first_response": "omnijudge_kernels.first_response",
}


def call(name: str) -> Any:
    """The chosen kernel on a small corpus, as lists."""
    rng = np.random.default_rng(1)
    some = [random_instance(rng, 6, 9, 4.0) for _ in range(20)]
    arguments = csr_times(some)
    if name == "assign":
        times, responses, low, high, targets = arguments
        return choose.assign(times, responses, low, high, targets).tolist()
    if name == "window_ranges":
        return [ends.tolist() for ends in choose.window_ranges(*arguments)]
    if name == "match_ordered_pairs":
        eligible = [naive.eligibility(*instance) for instance in some]
        pairs = [
            (6 * i + k, j)
            for i, table in enumerate(eligible)
            for k in range(6)
            for j in range(9)
            if table[k][j]
        ]
        packed = masks.pack_pairs([k for k, _ in pairs], [j for _, j in pairs], offsets([6] * 20))
        found = choose.match_ordered_pairs(packed)
        return [found.score.tolist(), found.taken.tolist()]
    first = choose.first_response(*arguments, arguments[2], variant="since_previous")
    return [first.taken.tolist(), first.timing.tolist()]


@pytest.mark.parametrize("name", COMPILED)
def test_either_way_gives_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as nothing_compiled:
        for module in COMPILED.values():
            nothing_compiled.delitem(sys.modules, module, raising=False)
        plain = call(name)
        assert not set(COMPILED.values()) & set(sys.modules)
    importlib.import_module(COMPILED[name])
    assert call(name) == plain  # compiled already, so it is used at any size


def test_the_work_decides() -> None:
    assert choose._plain(0.99, "not.yet.imported")
    assert not choose._plain(1.01, "not.yet.imported")
    assert not choose._plain(0.99, "sys")


def test_small_inputs_never_import_numba() -> None:
    program = """
import sys
import omnijudge_kernels
from omnijudge_kernels import choose, masks, permutation
assert choose.assign([0.5], [0, 1], [0.0], [1.0], [0, 1]).tolist() == [0]
times = ([0.5], [0, 1], [0.0], [1.0], [0, 1])
assert choose.window_ranges(*times)[1].tolist() == [1]
assert choose.first_response(*times).taken.tolist() == [0]
assert choose.match_ordered_pairs(masks.pack_pairs([0], [0], [0, 1])).score.tolist() == [1]
assert permutation.complete_sequence_law([(2, [1, 2])]).pmf.tolist() == [0.0, 1.0]
print("numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("False", "")
