"""Every Arrow schema of a run directory, with a sentence per column.

A benchmark adds its own columns to UNITS, CHUNKS, STAGES, JUDGEMENTS and SCORES with ``extend``.
Null means "not applicable" or "unscored", never 0 or NaN.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

SCHEMA_VERSION = "1"

STRING = pa.string()
FLOAT = pa.float64()
INT = pa.int64()
BOOL = pa.bool_()


def col(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    """A column with its meaning as field metadata."""
    return pa.field(name, kind, metadata={"meaning": meaning})


def extend(base: pa.Schema, columns: Iterable[pa.Field] = ()) -> pa.Schema:
    """The base schema followed by a benchmark's own columns, with the schema version."""
    return pa.schema([*base, *columns], metadata={"omnijudge.schema_version": SCHEMA_VERSION})


SYSTEM = col("system", STRING, "Name of the system under test.")
SAMPLE_ID = col("sample_id", STRING, "Sample: one recording with its annotation.")
UNIT_ID = col("unit_id", STRING, "Unit within the sample (slot, target, sentence, event, ...).")
UNIT_KIND = col("unit_kind", STRING, "Kind of unit.")
VIDEO_ID = col("video_id", STRING, "Video the unit comes from: the cluster of the intervals.")
ITEM = col("item", STRING, "Tells several of one stage apart; null where there is one.")
STAGE = col("stage", STRING, "Stage the text is judged in.")

WORDS = pa.list_(pa.struct([("start", FLOAT), ("end", FLOAT), ("text", STRING)]))

UNITS = extend(pa.schema([SAMPLE_ID, UNIT_ID, UNIT_KIND, VIDEO_ID]))

OUTPUTS = extend(
    pa.schema(
        [
            SYSTEM,
            SAMPLE_ID,
            col("state", STRING, "ok, missing, unreadable or not_evaluated."),
            col("file", STRING, "File the output was read from, relative to the system's folder."),
            col("detail", STRING, "Why it is missing or unreadable, or a benchmark's own remark."),
        ]
    )
)

CHUNKS = extend(
    pa.schema(
        [
            SYSTEM,
            SAMPLE_ID,
            col("chunk_id", INT, "Position in the source file."),
            col("start", FLOAT, "Start in seconds."),
            col("end", FLOAT, "End in seconds."),
            col("text", STRING, "What was said."),
            col("words", WORDS, "Words with their times, empty where there are none."),
            col("unit_id", STRING, "Unit the chunk was given to; null if it fits none."),
        ]
    )
)

STAGES = extend(
    pa.schema(
        [
            SYSTEM,
            SAMPLE_ID,
            UNIT_ID,
            ITEM,
            STAGE,
            col("text", STRING, "The text to be judged."),
            col("context", STRING, "The text around it, as shown to the judge."),
            col("text_hash", STRING, "Hash of judged text and reference, without prompt or model."),
        ]
    )
)

QUESTIONS = extend(
    pa.schema(
        [
            SYSTEM,
            SAMPLE_ID,
            UNIT_ID,
            ITEM,
            STAGE,
            col("judge", STRING, "Name of the judge."),
            col("prompt_id", STRING, "Pack, version, stage and language of the prompt."),
            col("fingerprint", STRING, "Hash of all that can change the answer (32 hex digits)."),
        ]
    )
)

JUDGEMENTS = extend(
    pa.schema(
        [
            SYSTEM,
            SAMPLE_ID,
            UNIT_ID,
            ITEM,
            STAGE,
            col("judge", STRING, "Name of the judge."),
            col("attempt", INT, "From 1; above 1 after an unusable answer."),
            col("repeat", INT, "From 0; above 0 where a judge is asked several times."),
            col("fingerprint", STRING, "Hash of all that can change the answer (32 hex digits)."),
            col("status", STRING, "ok, repaired, invalid or error."),
            col("reason", STRING, "How it was repaired, why it is invalid, or the error."),
            col("raw", STRING, "The answer text; null on an error."),
            col("model", STRING, "Model that answered, as it names itself."),
            col("prompt_tokens", INT, "Tokens of the prompt."),
            col("cached_tokens", INT, "Prompt tokens served from the prefix cache."),
            col("output_tokens", INT, "Tokens of the answer."),
        ]
    )
)

SCORES = extend(
    pa.schema(
        [
            SYSTEM,
            SAMPLE_ID,
            UNIT_ID,
            UNIT_KIND,
            VIDEO_ID,
            col(
                "judged",
                BOOL,
                "True if every verdict needed is there, false if one is missing, "
                "null if none was needed. In a run that was stopped, false for all units of a "
                "sample with a question that was not asked.",
            ),
            col(
                "judge_spread",
                FLOAT,
                "Largest difference between two judges (or repeats) about one verdict of the row, "
                "as a share of the scale; null where fewer than two answered.",
            ),
        ]
    )
)

METRICS = extend(
    pa.schema(
        [
            SYSTEM,
            col("metric", STRING, "Metric name."),
            col("group", STRING, "Group of units it is about."),
            col("value", FLOAT, "The value; null where it is undefined."),
            col("ci_low", FLOAT, "Lower end of the interval."),
            col("ci_high", FLOAT, "Upper end of the interval."),
            col("careful_low", FLOAT, "Lower end of the jackknife interval."),
            col("careful_high", FLOAT, "Upper end of the jackknife interval."),
            col("interval_method", STRING, "How ci_low and ci_high were made."),
            col("warning", STRING, "Why the interval deserves caution; null if nothing is known."),
            col("confidence", FLOAT, "Nominal coverage of the intervals."),
            col("n_units", INT, "Units the metric is about, scored or not."),
            col("n_clusters", INT, "Clusters with a positive denominator."),
            col("n_unscored", INT, "Units left out because a verdict is missing."),
            col("coverage", FLOAT, "Share of units that are scored."),
            col("bound_low", FLOAT, "Value if every unscored unit were worst."),
            col("bound_high", FLOAT, "Value if every unscored unit were best."),
            col("n_missing", INT, "Samples of this system without a usable output."),
            col("dropped_replicates", INT, "Bootstrap replicates in which the value is undefined."),
            col("profile", STRING, "Scoring profile."),
        ]
    )
)

COMPARISONS = extend(
    pa.schema(
        [
            col("baseline", STRING, "System compared against."),
            SYSTEM,
            col("metric", STRING, "Metric name."),
            col("group", STRING, "Group of units it is about."),
            col("difference", FLOAT, "System minus baseline, on samples scored for both."),
            col("ci_low", FLOAT, "Lower end of the interval of the difference."),
            col("ci_high", FLOAT, "Upper end of the interval of the difference."),
            col("careful_low", FLOAT, "Lower end of the jackknife interval."),
            col("careful_high", FLOAT, "Upper end of the jackknife interval."),
            col("interval_method", STRING, "How ci_low and ci_high were made."),
            col("p_value", FLOAT, "Sign-flip p-value by cluster."),
            col("p_adjusted", FLOAT, "The same, adjusted inside its family."),
            col("smallest_p", FLOAT, "Smallest p-value the number of flips allows."),
            col("n_clusters", INT, "Clusters with a positive denominator on either side."),
            col("p_method", STRING, "sign flip, or jackknife t where no flip reached it."),
            col("adjustment", STRING, "holm or bh (Benjamini-Hochberg)."),
            col("detectable", FLOAT, "True difference found with 80 % probability, unadjusted."),
            col("n_samples", INT, "Samples scored for both."),
            col("n_left_out", INT, "Samples that are not scored for one of the two."),
            col("dropped_replicates", INT, "Bootstrap replicates in which it is undefined."),
            col("confidence", FLOAT, "Nominal coverage of the intervals."),
        ]
    )
)

RANKS = extend(
    pa.schema(
        [
            SYSTEM,
            col("metric", STRING, "Metric name."),
            col("group", STRING, "Group of units it is about."),
            col("rank", INT, "Rank by value, 1 is best; null where the value is undefined."),
            col("rank_low", INT, "Best rank the data allow."),
            col("rank_high", INT, "Worst rank the data allow."),
            col("p_best", FLOAT, "Share of replicates in which it is best; descriptive only."),
            col("value", FLOAT, "The value it is ranked by."),
            col("winner_low", FLOAT, "First rank: lower end, corrected for being chosen as best."),
            col("winner_high", FLOAT, "First rank: upper end of the same."),
            col("n_ranked", INT, "Systems that are ranked."),
        ]
    )
)


def make(schema: pa.Schema, columns: dict[str, object]) -> pa.Table:
    """A table of the schema; columns not given are null.

    Args:
        schema: schema of the result.
        columns: name -> list, NumPy array or Arrow array; all of one length.
    """
    unknown = columns.keys() - set(schema.names)
    if unknown:
        raise KeyError(f"columns {sorted(unknown)} are not in the schema")
    length = len(next(iter(columns.values()))) if columns else 0  # type: ignore[arg-type]
    arrays = []
    for field in schema:
        values = columns.get(field.name)
        if values is None:
            arrays.append(pa.nulls(length, field.type))
        elif isinstance(values, pa.Array | pa.ChunkedArray):
            arrays.append(values if values.type == field.type else values.cast(field.type))
        else:
            arrays.append(pa.array(values, field.type, from_pandas=False))
    return pa.table(arrays, schema=schema)
