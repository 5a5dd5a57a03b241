"""A finished run under other scoring options: its numbers at many points, without a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from omnijudge.asking import Asking, JudgeSeat, stage_keys
from omnijudge.ingest import match
from omnijudge.judging.question import Asker
from omnijudge.judging.replay import NOT_THERE
from omnijudge.judging.verdicts import Outcome, StoredAnswers
from omnijudge.partitions import Plan, read_table
from omnijudge.results import incomplete_samples, without_samples
from omnijudge.seats import reading
from omnijudge.statistics.jackknife import evaluate
from omnijudge.statistics.metric import Array, Metric, distinct_sums
from omnijudge.statistics.sums import ScoreRows, cluster_index
from omnijudge.summary import unit_clusters

if TYPE_CHECKING:
    from omnijudge.benchmarks.base import Benchmark, Partition, Prompt
    from omnijudge.judging.replay import Key
    from omnijudge.judging.store import JudgementStore
    from omnijudge.judging.types import Reply
    from omnijudge.stored_run import StoredRun

Ints = npt.NDArray[np.int64]


class CachedAsker(Asker):
    """Fingerprints each prompt of a partition once, however many points ask for it."""

    def __init__(self, inner: Asker) -> None:
        self.__dict__.update(inner.__dict__)
        self._known: dict[bytes, bytes] = {}

    def fingerprint(self, prompt: Prompt) -> bytes:
        """Fingerprint of a prompt."""
        variables = dict(prompt.variables)
        if variables.get("media"):
            variables["media"] = getattr(variables["media"], "digest", None)
            if variables["media"] is None:
                return super().fingerprint(prompt)
        content = [prompt.stage, prompt.language, variables]
        key = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = super().fingerprint(prompt)
        return found

    def forget(self) -> None:
        """Makes room for the next partition."""
        self._known.clear()


class SameText:
    """Answers of a replay, for rows whose text is the one that was judged."""

    def __init__(self, inner: Any, stages: pa.Table) -> None:
        self._inner = inner
        names = ("system", "sample_id", "unit_id", "item", "stage")
        keys = zip(*(stages[n].to_pylist() for n in names), strict=True)
        self._judged = dict(zip(keys, stages["text_hash"].to_pylist(), strict=True))
        self._now: dict[Key, str | None] = {}

    def take(self, part: Partition) -> None:
        """Takes the texts of a partition as those that are asked about."""
        rows = np.arange(part.stages.num_rows, dtype=np.int64)
        hashes = part.stages["text_hash"].to_pylist()
        self._now = dict(zip(stage_keys(part, rows), hashes, strict=True))

    def attempts(
        self, keys: Sequence[Key], fingerprints: Sequence[bytes], repeat: int, most: int
    ) -> list[list[tuple[int, Reply]]]:
        """Recorded attempts where the text is the same; else nothing is there."""
        from omnijudge.judging.types import Reply

        found = self._inner.attempts(keys, fingerprints, repeat, most)
        nothing = [(1, Reply(raw=None, error=NOT_THERE))]
        return [
            f if key in self._judged and self._judged[key] == self._now.get(key) else nothing
            for key, f in zip(keys, found, strict=True)
        ]


class RunThenStore(StoredAnswers):
    """Answers of a run; the store's where the run has none."""

    def __init__(self, recorded: Any, store: JudgementStore) -> None:
        super().__init__(store)
        self._recorded = recorded

    def has_all(self, fingerprints: Sequence[bytes]) -> bool:
        """Whether every one of these questions has an answer by now."""
        found = self._recorded.attempts([("",) * 5] * len(fingerprints), fingerprints, 0, 1)
        return super().has_all([p for p, f in zip(fingerprints, found, strict=True) if not f])

    def attempts(
        self, keys: Sequence[Key], fingerprints: Sequence[bytes], repeat: int, most: int
    ) -> list[list[tuple[int, Reply]]]:
        """Per question its attempts in the run, or else in the store."""
        found: list[list[tuple[int, Reply]]] = self._recorded.attempts(
            keys, fingerprints, repeat, most
        )
        open_ones = [i for i, f in enumerate(found) if not f]
        stored = super().attempts(
            [keys[i] for i in open_ones], [fingerprints[i] for i in open_ones], repeat, most
        )
        for i, attempts in zip(open_ones, stored, strict=True):
            found[i] = attempts
        return found


@dataclass
class PointSums:
    """A run at one point.

    Attributes:
        options: the scoring options there.
        totals: (S, K) sums of all metrics.
        clusters: (S, V, K) the same by cluster.
        missing: (S, M) units of each metric that lack a judgement.
        questions: questions that nobody was asked, beyond those that the run itself lacks.
    """

    options: Any
    totals: Array
    clusters: Array
    missing: Ints
    questions: int = 0


def _unfinished(run: StoredRun) -> list[str]:
    return sorted(incomplete_samples(run.asking())) if run.stopped else []


class Points:
    """Scores a run at many points, partition by partition."""

    def __init__(
        self, run: StoredRun, metrics: Sequence[Metric], store: JudgementStore | None = None
    ) -> None:
        """Prepares sums, clusters and judges.

        Args:
            run: the run.
            metrics: metrics that are functions of sums.
            store: where answers are that the run does not have.
        """
        self.run = run
        self.metrics = list(metrics)
        self.sums = distinct_sums(metrics)
        self._cluster_of = unit_clusters(run.units, run.config.statistics.cluster)
        self._sample_cluster = {s: c for (s, _), c in self._cluster_of.items()}
        names = sorted(set(self._cluster_of.values()))
        self._clusters = {c: i for i, c in enumerate(names)}
        self._row_keyed: list[SameText] = []
        self._askers: list[CachedAsker] = []
        self.seats = [self._seat(seat, store) for seat in run.seats()]
        # A run that was stopped leaves out the samples it did not finish, at every point.
        self._left_out = pa.array(_unfinished(run), pa.string())

    def _seat(self, seat: JudgeSeat, store: JudgementStore | None) -> JudgeSeat:
        source: Any = seat.source
        if seat.judge.engine == "replay":
            source = SameText(source, read_table(self.run.directory.table("stages")))
            self._row_keyed.append(source)
        elif store is not None:
            source = RunThenStore(source, store)
        asker = CachedAsker(seat.asker)
        self._askers.append(asker)
        return replace(seat, asker=asker, source=source)

    def at(self, points: Sequence[Any], advance: Any = None) -> list[PointSums]:
        """The run at several points.

        Args:
            points: resolved scoring options; the first are those of the run itself. What lacks a
                judgement there is not held against the others.
            advance: called after every partition.
        """
        size = (len(self.run.plan.systems), len(self._clusters), len(self.sums))
        found = [
            PointSums(
                options,
                np.zeros((size[0], size[2])),
                np.zeros(size),
                np.zeros((size[0], len(self.metrics)), np.int64),
            )
            for options in points
        ]
        for block in range(len(self.run.plan.blocks)):
            for system in range(size[0]):
                self._partition(block, system, found)
                if advance is not None:
                    advance()
        return found

    def _partition(self, block: int, system: int, found: Sequence[PointSums]) -> None:
        bare = self.run.unmatched(block, system)
        known: set[Key] | None = None
        for point in found:
            part, lacking = self._judged(bare, block, point.options, known)
            new = set() if known is None else lacking - known
            known = lacking if known is None else known
            scores = self.run.benchmark.score(part, point.options)
            scores = without_samples(scores, self._left_out)
            self._add(point, system, scores, {key[1] for key in new})
            point.questions += len(new)
        for asker in self._askers:
            asker.forget()

    def _judged(
        self, bare: Partition, block: int, options: Any, known: set[Key] | None
    ) -> tuple[Partition, set[Key]]:
        """A partition with its verdicts, and the rows that nobody was asked about.

        What the run itself lacks (``known``) stays what it is there; None for the run itself.
        """
        benchmark = self.run.benchmark
        part = match(benchmark, bare, options)
        for source in self._row_keyed:
            source.take(part)
        plan = Plan([self.run.plan.blocks[block]], [bare.system])
        seats = [self._reading(seat, options) for seat in self.seats]
        asking = Asking(benchmark, options, plan, seats, self.run.combine, lambda *_, **__: part)
        for _ in range(benchmark.rounds):
            if not asking.find():
                break
        results = asking.results(part, 0, 0)
        keys = stage_keys(part, np.array(asking.asked[0].rows, np.int64))
        lacking = {
            key for key, panel in zip(keys, results, strict=True) if any(map(never_asked, panel))
        }
        if known is not None and lacking - known:
            results = [
                [NOT_ASKED if never_asked(o) and key not in known else o for o in panel]
                for key, panel in zip(keys, results, strict=True)
            ]
        return asking.with_verdicts(part, 0, 0, results), lacking

    def _reading(self, seat: JudgeSeat, options: Any) -> JudgeSeat:
        mode, most = reading(seat.judge, options)
        return replace(seat, mode=mode, most=most)

    def _add(self, point: PointSums, system: int, scores: pa.Table, lacking: set[str]) -> None:
        rows = ScoreRows(scores)
        samples = scores["sample_id"].to_pylist()
        units = scores["unit_id"].to_pylist()
        names = [
            self._cluster_of.get((s, u)) or self._sample_cluster[s]
            for s, u in zip(samples, units, strict=True)
        ]
        index = cluster_index(self._clusters, _strings(names))
        for k, s in enumerate(self.sums):
            amounts = rows.per_row(s)
            point.totals[system, k] += amounts.sum()
            point.clusters[system, :, k] += np.bincount(
                index, amounts, minlength=len(self._clusters)
            )
        if not lacking:
            return
        lost = ~rows.scored & np.array([s in lacking for s in samples], np.bool_)
        for m, metric in enumerate(self.metrics):
            own = np.zeros(len(rows), np.bool_)
            for s in metric.units:
                own |= rows.where(s.kind, s.where)
            point.missing[system, m] += int((own & lost).sum())

    def values(self, point: PointSums) -> Array:
        """(S, M) values of a point, NaN where undefined or lacking judgements."""
        position = {s: k for k, s in enumerate(self.sums)}
        columns = [
            evaluate(m.function, point.totals[:, [position[s] for s in m.sums]])
            for m in self.metrics
        ]
        return np.where(point.missing > 0, np.nan, np.stack(columns, axis=1))

    def stack(self, point: PointSums, metric: Metric) -> Array:
        """(S, V, k) sums of one metric by cluster."""
        position = {s: k for k, s in enumerate(self.sums)}
        return point.clusters[..., [position[s] for s in metric.sums]]


NOT_ASKED = Outcome([], None, {})


def never_asked(outcome: Outcome) -> bool:
    """Whether a question has no verdict because nobody was asked, or its row is in no file."""
    if outcome.status is None:
        return not outcome.attempts
    return outcome.status == "error" and all(a.reply.error == NOT_THERE for a in outcome.attempts)


def _strings(names: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.chunked_array([pa.array(names, pa.string())], pa.string())


class ManyOptions:
    """A benchmark whose partitions each know their own options, so that one judge step asks all.

    A partition's system is written ``N\\x1fSYSTEM``: point and name.
    """

    def __init__(self, benchmark: Benchmark, points: Sequence[Any]) -> None:
        self._benchmark = benchmark
        self._points = points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._benchmark, name)

    def _own(self, part: Partition) -> Any:
        return self._points[int(part.system.partition("\x1f")[0])]

    def pending(self, part: Partition, options: Any) -> Ints:
        """Rows to ask under the partition's own options."""
        return self._benchmark.pending(part, self._own(part))

    def prompts(self, part: Partition, rows: Ints, options: Any) -> list[Prompt]:
        """Their prompts."""
        return self._benchmark.prompts(part, rows, self._own(part))


def asking_everywhere(points: Points, options: Sequence[Any]) -> Asking:
    """The questions of a run at several points as one set; equal ones are asked once."""
    run = points.run
    systems = [f"{n}\x1f{s}" for n in range(len(options)) for s in run.plan.systems]
    plan = Plan(run.plan.blocks, systems)
    width = len(run.plan.systems)

    def load(block: int, system: int, with_chunks: bool = False) -> Partition:
        number, own = divmod(system, width)
        part = match(run.benchmark, run.unmatched(block, own), options[number])
        return replace(part, system=systems[system])

    benchmark: Any = ManyOptions(run.benchmark, options)
    return Asking(benchmark, run.options, plan, points.seats, run.combine, load)


def scoring_with(scoring: Mapping[str, Any], change: Mapping[str, Any], model: Any) -> Any:
    """Scoring options with some replaced, under whichever of its names an option was given."""
    aliases = {f.alias: n for n, f in model.model_fields.items() if f.alias}
    taken = {aliases.get(k, k) for k in change}
    kept = {k: v for k, v in scoring.items() if aliases.get(k, k) not in taken}
    return {**kept, **change}
