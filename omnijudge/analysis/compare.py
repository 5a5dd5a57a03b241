"""``omnijudge compare``: systems within and across runs, ranks, gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.analysis.gates import OF_TWO, Condition, Outcome, parse_gate
from omnijudge.analysis.run_set import RunSet
from omnijudge.analysis.selecting import metric_named, select_metrics
from omnijudge.analysis.systems import choose_baseline, compared_systems
from omnijudge.analysis.texts import (
    grid,
    heading,
    p_text,
    share_text,
    signed,
    signed_span,
    span,
)
from omnijudge.errors import ConfigError
from omnijudge.partitions import write_table
from omnijudge.report.vocabulary import EMPTY, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from omnijudge.report.grid import Grid
    from omnijudge.statistics.metric import Metric
    from omnijudge.statistics.multiple import Adjustment

MOST_PAIRS = 200
"""Up to so many pairs of a metric are printed; all of them stand in the tables."""


@dataclass(frozen=True)
class Gate:
    """A gate and what became of it."""

    text: str
    outcome: Outcome


@dataclass(frozen=True)
class Compared:
    """Systems compared.

    Attributes:
        comparisons: differences (``tables.COMPARISONS``).
        ranks: ranks (``tables.RANKS``).
        baseline: the system that the others are compared with; None for all pairs.
        gates: what became of the gates.
        notes: what a reader should know.
        shown: (metric, group) of what a terminal shows.
        cluster: column that the clusters come from.
    """

    comparisons: pa.Table
    ranks: pa.Table
    baseline: str | None
    gates: Sequence[Gate] = ()
    notes: Sequence[str] = ()
    shown: Sequence[tuple[str, str]] = ()
    cluster: str = "video_id"
    values: Mapping[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether a gate has failed."""
        return any(g.outcome.failed for g in self.gates)


class GateNumbers:
    """Numbers of a set of runs for gates, each made when it is first asked for."""

    def __init__(self, runs: RunSet, adjustment: Adjustment) -> None:
        self._runs = runs
        self._adjustment: Adjustment = adjustment
        self._metrics = runs.metrics
        self._rows = runs.metric_rows()
        self._tables: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
        self.systems: Sequence[str] = compared_systems(runs.systems)

    def number(
        self, function: str, systems: Sequence[str], metric: str, group: str
    ) -> float | None:
        """A function of one or two systems and a metric; None where it is undefined."""
        what = f"--fail-if {function}"
        wanted = metric_named(self._metrics, metric, group, what)
        for system in systems:
            if system not in self._runs.systems:
                known = ", ".join(self._runs.systems)
                raise ConfigError(f"{what}: no system {system!r}; there are {known}")
        if function in OF_TWO:
            return self._difference(function, systems[0], systems[1], wanted)
        if function.startswith("rank"):
            return self._rank(function, systems[0], wanted)
        column = {"low": "ci_low", "high": "ci_high", "unscored": "n_unscored"}
        value = self._rows[systems[0], metric, group][column.get(function, function)]
        return None if value is None else float(value)

    def _difference(
        self, function: str, system: str, baseline: str, metric: Metric
    ) -> float | None:
        _comparable(metric, f"--fail-if {function}")
        column = {
            "difference_low": "ci_low",
            "difference_high": "ci_high",
            "p": "p_value",
        }.get(function, function)
        key = (baseline, metric.name, metric.group)
        if key not in self._tables:
            compared = self._runs.comparison([metric], self._adjustment)
            for name in (system, baseline):
                compared.check(name, f"--fail-if {function}")
            rows = compared.baseline_table(baseline, [metric]).to_pylist()
            self._tables[key] = {r["system"]: r for r in rows}
        if system == baseline:
            raise ConfigError(f"--fail-if {function}: {system} is compared with itself")
        value: float | None = self._tables[key][system][column]
        return value

    def _rank(self, function: str, system: str, metric: Metric) -> float | None:
        _comparable(metric, f"--fail-if {function}")
        key = ("", metric.name, metric.group)
        if key not in self._tables:
            compared = self._runs.comparison([metric], self._adjustment)
            compared.check(system, f"--fail-if {function}")
            rows = compared.ranks_table([metric]).to_pylist()
            self._tables[key] = {r["system"]: r for r in rows}
        row = self._tables[key].get(system)
        return None if row is None or row[function] is None else float(row[function])


def _comparable(metric: Metric, what: str) -> None:
    if metric.quantile is not None:
        raise ConfigError(
            f"{what}: {metric.name} is a quantile, and there is no paired test of it; use the mean"
        )


def compare(
    runs: Sequence[str | Path],
    *,
    baseline: str | None = None,
    metric: str | None = None,
    group: str | None = None,
    all_pairs: bool = False,
    correction: Adjustment = "holm",
    fail_if: Sequence[str] = (),
    out: str | Path | None = None,
) -> Compared:
    """Compares the systems of one or several runs, pair by pair on the samples scored for both.

    Args:
        runs: folders of the runs.
        baseline: the system to compare with; None: ``statistics.baseline`` of the first run, else
            its first system.
        metric: a metric name; None: the leading metrics of the benchmark.
        group: a group name.
        all_pairs: every pair of systems instead of a baseline.
        correction: ``holm`` or ``bh``, inside the family of one metric and group.
        fail_if: gates (see ``omnijudge.analysis.gates``).
        out: folder to write ``comparisons.parquet`` and ``ranks.parquet`` to.

    Raises:
        ConfigError: the runs cannot be compared, or a name or gate is wrong.
        DataError: there is no finished run.
    """
    conditions: list[tuple[str, Condition]] = [(text, parse_gate(text)) for text in fail_if]
    with RunSet(runs) as found:
        metrics = select_metrics(found.first.benchmark, found.metrics, metric, group)
        compared = found.comparison(metrics, correction)
        against = None
        if all_pairs:
            table = compared.pairs_table(metrics)
        else:
            if baseline is not None:
                against = compared.check(baseline, "--baseline")
            else:
                named = found.first.config.statistics.baseline
                against = choose_baseline(named, found.systems)
            table = compared.baseline_table(against, metrics)
        ranks = compared.ranks_table(metrics)
        rows = found.metric_rows()
        numbers = GateNumbers(found, correction) if conditions else None
        gates = [Gate(t, c.outcome(numbers)) for t, c in conditions] if numbers else []
        keys = [(m.name, m.group) for m in metrics]
        if metric is None and group is None:
            keys = [k for k in keys if any(_value(rows, s, k) is not None for s in found.systems)]
            keys = keys[:1]
        result = Compared(
            table,
            ranks,
            against,
            gates,
            tuple(found.notes),
            keys,
            found.first.config.statistics.cluster,
            rows,
        )
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        write_table(folder / "comparisons.parquet", result.comparisons)
        write_table(folder / "ranks.parquet", result.ranks)
    return result


def _value(
    rows: Mapping[tuple[str, str, str], dict[str, Any]], system: str, key: tuple[str, str]
) -> float | None:
    row = rows.get((system, *key))
    return None if row is None else row["value"]


# For people


def compared_text(found: Compared, width: int | None = None) -> str:
    """The comparison as tables for a terminal."""
    from omnijudge.report.text_tables import as_table

    grids = []
    for key in found.shown:
        grids.append(_ranking(found, key))
        if found.baseline is None:
            grids.append(_pairs(found, key))
    about = [*_methods(found), *found.notes]
    for gate in found.gates:
        about += ["", *gate_lines(gate)]
    return as_table(grids, about, width)


def gate_lines(gate: Gate) -> list[str]:
    """A gate in words."""
    state = {True: "FAILED", False: "passed", None: "FAILED (undefined)"}[gate.outcome.holds]
    return [f"Gate {state}: fail if {gate.text}", *(f"  {b}" for b in gate.outcome.because[:20])]


def _rows(table: pa.Table, key: tuple[str, str]) -> list[dict[str, Any]]:
    return [r for r in table.to_pylist() if (r["metric"], r["group"]) == key]


def _ranking(found: Compared, key: tuple[str, str]) -> Grid:
    metric = key[0]
    ranks = _rows(found.ranks, key)
    differences = _rows(found.comparisons, key)
    against = {r["system"]: r for r in differences} if found.baseline is not None else {}
    if not ranks:  # no direction is meant, so there is no order
        systems = dict.fromkeys(s for r in differences for s in (r["baseline"], r["system"]))
        ranks = [{"system": s, "rank": None, "p_best": None} for s in systems]
    ranks.sort(key=lambda r: (r["rank"] is None, r["rank"] or 0))
    heads: list[str | tuple[str, bool]] = [("System", False), "#", "possible", "Value"]
    if found.baseline is not None:
        heads += DIFFERENCE
    heads.append("Best in")
    rows = []
    for r in ranks:
        line = [
            r["system"],
            EMPTY if r["rank"] is None else str(r["rank"]),
            _possible(r),
            shown(metric, _value(found.values, r["system"], key)),
        ]
        if found.baseline is not None:
            line += _difference(against.get(r["system"]), metric)
        rows.append([*line, share_text(r["p_best"])])
    title = heading(*key)
    if found.baseline is not None:
        title += f": each system less {found.baseline}"
    return grid("comparison", title, heads, rows, _notes(key, ranks, differences))


def _possible(row: Mapping[str, Any]) -> str:
    if row["rank"] is None:
        return EMPTY
    low, high = row["rank_low"], row["rank_high"]
    return str(low) if low == high else f"{low}-{high}"


DIFFERENCE = ("Difference", "Interval", "Careful", "p", "adjusted", "Detectable")


def _difference(row: Mapping[str, Any] | None, metric: str) -> list[str]:
    if row is None:
        return ["baseline", *[""] * (len(DIFFERENCE) - 1)]
    return [
        signed(metric, row["difference"]),
        signed_span(metric, row["ci_low"], row["ci_high"]),
        signed_span(metric, row["careful_low"], row["careful_high"]),
        p_text(row["p_value"], row["smallest_p"]),
        p_text(row["p_adjusted"]),
        shown(metric, row["detectable"]),
    ]


def _pairs(found: Compared, key: tuple[str, str]) -> Grid:
    rows = sorted(_rows(found.comparisons, key), key=lambda r: (r["p_value"] is None, r["p_value"]))
    lines = [[r["system"], r["baseline"], *_difference(r, key[0])] for r in rows[:MOST_PAIRS]]
    heads: list[str | tuple[str, bool]] = [("System", False), ("less", False), *DIFFERENCE]
    notes = []
    if len(rows) > MOST_PAIRS:
        notes.append(
            f"and {len(rows) - MOST_PAIRS:,} more pairs; --format json or --out has all of them"
        )
    return grid("pairs", f"{heading(*key)}: every pair, surest first", heads, lines, notes)


METHODS = {"percentile": "cluster bootstrap, percentile", "bca": "cluster bootstrap, BCa",
           "jackknife": "cluster jackknife"}  # fmt: skip
ADJUSTMENTS = {"holm": "Holm", "bh": "Benjamini-Hochberg"}


def _notes(
    key: tuple[str, str],
    ranks: Sequence[Mapping[str, Any]],
    differences: Sequence[Mapping[str, Any]],
) -> list[str]:
    """What is special about one metric."""
    notes = []
    winner = next((r for r in ranks if r.get("winner_low") is not None), None)
    if winner is not None and winner["n_ranked"] > 1:
        notes.append(
            f"{winner['system']} was chosen as the best of {winner['n_ranked']}; corrected for "
            f"that, its interval is {span(key[0], winner['winner_low'], winner['winner_high'])}."
        )
    known = [r for r in differences if r["difference"] is not None]
    clusters = min((r["n_clusters"] for r in known), default=0)
    least = 2.0 ** (1 - clusters)
    if known and least > 1 - known[0]["confidence"]:
        notes.append(
            f"Only {clusters} clusters have data: no p can fall below {least:.2g}, however large "
            "the difference."
        )
    left = max((r["n_left_out"] for r in differences), default=0)
    if left:
        samples = differences[0]["n_samples"] + differences[0]["n_left_out"]
        notes.append(f"Compared on samples scored for both; up to {left:,} of {samples:,} are not.")
    return notes


def _methods(found: Compared) -> list[str]:
    """How the numbers were made."""
    lines = []
    rows = [r for key in found.shown for r in _rows(found.comparisons, key)]
    if rows:
        one = rows[0]
        family = "pairs" if found.baseline is None else "systems"
        smallest = max((r["smallest_p"] for r in rows if r["smallest_p"]), default=None)
        line = (
            f"p: sign flips of whole clusters ({found.cluster}), adjusted by "
            f"{ADJUSTMENTS[one['adjustment']]} over the {family} of one table"
        )
        lines.append(line + (f"; the flips allow no p below {smallest:.2g}." if smallest else "."))
        if any(r["p_method"] != "sign flip" for r in rows):
            lines.append(
                "Where no flip reached the difference and more flips cannot be afforded, p is the "
                "tail of the jackknife t."
            )
        lines.append(
            f"Intervals: {100 * one['confidence']:g} %, {METHODS[one['interval_method']]}; "
            "careful: jackknife t. Detectable: true difference found with 80 % probability, "
            "unadjusted."
        )
    if any(r["p_best"] is not None for key in found.shown for r in _rows(found.ranks, key)):
        lines.append(
            "possible: ranks that pairwise tests (Holm) leave open. Best in: share of resamples; "
            "descriptive, no test."
        )
    return lines


def compared_json(found: Compared) -> str:
    """The comparison for machines."""
    import json

    return json.dumps(
        {
            "baseline": found.baseline,
            "comparisons": found.comparisons.to_pylist(),
            "ranks": found.ranks.to_pylist(),
            "gates": [
                {
                    "expression": g.text,
                    "failed": g.outcome.failed,
                    "holds": g.outcome.holds,
                    "because": list(g.outcome.because),
                }
                for g in found.gates
            ],
            "notes": list(found.notes),
        },
        ensure_ascii=False,
        indent=2,
        allow_nan=False,
    )
