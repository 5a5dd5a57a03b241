"""The library: everything the command line does is one call of this."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnijudge.errors import DataError
from omnijudge.partitions import read_table
from omnijudge.run_directory import RunDirectory

if TYPE_CHECKING:
    import pyarrow as pa

    from omnijudge.analysis.agreement import PairAgreement
    from omnijudge.analysis.compare import Compared
    from omnijudge.analysis.gold_sample import GoldPlan
    from omnijudge.analysis.rectifying import Correction
    from omnijudge.analysis.sensitivity import Sensitivity
    from omnijudge.config import RunConfig
    from omnijudge.pipeline import Outcome, RunFlags
    from omnijudge.statistics.multiple import Adjustment


class Run:
    """A run on disk.

    Tables are ``pyarrow.Table``; their columns are described in ``omnijudge.tables``.
    """

    def __init__(self, path: str | os.PathLike[str], outcome: Outcome | None = None) -> None:
        self.path = Path(path)
        self.outcome = outcome
        self._directory = RunDirectory(path)

    @property
    def manifest(self) -> dict[str, Any]:
        """``run.json``.

        Raises:
            DataError: there is no run here.
        """
        found = self._directory.manifest()
        if found is None:
            raise DataError(f"{self.path}: there is no run here (no run.json); check the path")
        return found

    def table(self, name: str) -> pa.Table:
        """A table of the run by its name.

        Raises:
            DataError: it is missing or damaged.
        """
        return read_table(self._directory.table(name))

    @property
    def metrics(self) -> pa.Table:
        """The metrics with their intervals."""
        return self.table("metrics")

    @property
    def units(self) -> pa.Table:
        """The units."""
        return self.table("units")

    @property
    def judgements(self) -> pa.Table:
        """Every attempt of every question."""
        return self.table("judgements")

    @property
    def scores(self) -> pa.Table:
        """The score rows."""
        return self.table("scores")

    @property
    def comparisons(self) -> pa.Table:
        """Differences to the baseline by the leading metrics."""
        return self.table("comparisons")

    @property
    def ranks(self) -> pa.Table:
        """Ranks by the leading metrics, with those that the tests leave open."""
        return self.table("ranks")

    def compare(
        self,
        *others: str | os.PathLike[str],
        baseline: str | None = None,
        metric: str | None = None,
        group: str | None = None,
        all_pairs: bool = False,
        correction: Adjustment = "holm",
        fail_if: Sequence[str] = (),
    ) -> Compared:
        """Compares systems of this run, and of others with the same annotations and judge.

        Args:
            others: folders of further runs.
            baseline: the system to compare with; None: ``statistics.baseline``, else the first.
            metric: a metric name; None: the leading metrics of the benchmark.
            group: a group name.
            all_pairs: every pair of systems instead of a baseline.
            correction: of p-values inside one metric and group, ``holm`` or ``bh``.
            fail_if: gates (``omnijudge.analysis.gates``).

        Returns:
            Tables ``comparisons`` and ``ranks``, and what became of the gates.

        Raises:
            ConfigError: the runs cannot be compared, or a name or gate is wrong.
        """
        from omnijudge.analysis.compare import compare

        return compare(
            [self.path, *(Path(o) for o in others)],
            baseline=baseline,
            metric=metric,
            group=group,
            all_pairs=all_pairs,
            correction=correction,
            fail_if=fail_if,
        )

    def sensitivity(self, **options: Any) -> Sensitivity:
        """Values and ranks under other scoring options, from the answers that are there.

        Options as in ``omnijudge.analysis.sensitivity.sensitivity``: ``ask``, ``metric``,
        ``group``, ``only`` (names of sweeps), ``out``.
        """
        from omnijudge.analysis.sensitivity import sensitivity

        return sensitivity(self.path, **options)

    def sample(self, budget: str, **options: Any) -> GoldPlan:
        """Draws videos for a gold judge and writes the questions about them.

        Options as in ``omnijudge.analysis.gold_sample.sample``: ``strata``, ``seed``, ``model``,
        ``price``, ``metric``, ``group``, ``out``.
        """
        from omnijudge.analysis.gold_sample import sample

        return sample(self.path, budget, **options)

    def rectify(self, gold: str | os.PathLike[str], **options: Any) -> Correction:
        """Metrics corrected by gold judgements on a random sample of videos.

        Options as in ``omnijudge.analysis.rectifying.correct``: ``sample``,
        ``declared_random``, ``baseline``, ``metric``, ``group``, ``guard_rare_errors``.
        """
        from omnijudge.analysis.rectifying import correct

        return correct(self.path, Path(gold), **options)


def run(
    config: RunConfig | str | os.PathLike[str],
    overrides: Sequence[str] = (),
    flags: RunFlags | None = None,
) -> Run:
    """Runs a configuration (a file, or one made in Python) and opens the result.

    Args:
        config: configuration or path of its file.
        overrides: ``key.path=value`` as behind ``-o``.
        flags: limits of the command line; quiet by default.

    Raises:
        OmnijudgeError: it could not run.
    """
    from omnijudge.config import RunConfig, load_config
    from omnijudge.pipeline import RunFlags
    from omnijudge.pipeline import run as run_pipeline

    if not isinstance(config, RunConfig):
        config = load_config(config, overrides)
    outcome = run_pipeline(config, flags or RunFlags(quiet=True))
    return Run(outcome.output or config.output, outcome)


def open_run(path: str | os.PathLike[str]) -> Run:
    """Opens a run on disk.

    Raises:
        DataError: there is none.
    """
    found = Run(path)
    _ = found.manifest
    return found


def agree(*judges: str | os.PathLike[str], **options: Any) -> list[PairAgreement]:
    """How far judges agree, in pairs: runs, replay files or ``judgements.parquet`` files.

    Options as in ``omnijudge.analysis.agreement.agree``: ``margin``, ``metric``, ``group``,
    ``baseline``, ``largest``.
    """
    from omnijudge.analysis.agreement import agree as compare_judges

    return compare_judges([Path(j) for j in judges], **options)
