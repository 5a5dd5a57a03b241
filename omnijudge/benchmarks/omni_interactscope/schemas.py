"""Omni-InteractScope's columns beside the common ones."""

from __future__ import annotations

import pyarrow as pa

from omnijudge.tables import (
    BOOL,
    CHUNKS,
    FLOAT,
    INT,
    JUDGEMENTS,
    SCORES,
    STAGES,
    STRING,
    UNITS,
    col,
    extend,
)

TARGET = "target"
INTERACTION = "interaction"
"""Kinds of units; the unit of an interaction as a whole has this as its id, too."""

VERDICT = "verdict"
"""The one stage."""

NAMES = pa.list_(STRING)

UNIT_SCHEMA = extend(
    UNITS,
    [
        col("task", STRING, "T1 to T7, T8-A, T8-B or T8-C."),
        col("position", INT, "Place of the target in time, from 1."),
        col("sequence_length", INT, "Targets of the interaction."),
        col("target_order", FLOAT, "Order as annotated."),
        col("rubric", STRING, "tool_set, general, event, translation or assistance."),
        col("reference", STRING, "Reference answer."),
        col("tools", NAMES, "Tools to be called (T1)."),
        col("ref_start", FLOAT, "Reference time or start of the interval, in seconds."),
        col("ref_end", FLOAT, "Reference time or end of the interval, in seconds."),
        col("request", STRING, "What the user asked."),
        col("request_time", FLOAT, "When it was asked, in seconds; null for T8-A."),
        col("clip_start", FLOAT, "Start of the clip in seconds."),
        col("clip_end", FLOAT, "End of the clip in seconds."),
        col("language", STRING, "Language of the interaction."),
        col("attributes", pa.map_(STRING, STRING), "Further keys of the annotation."),
    ],
)

CHUNK_SCHEMA = extend(
    CHUNKS,
    [
        col("tools", NAMES, "Tools called with this output."),
        col("granularity", STRING, "response, or fragment: grouped before it is scored."),
        col(
            "response",
            INT,
            "Effective response the output is part of, by the chunk_id of its first member; "
            "null for silence and for outputs before the request.",
        ),
    ],
)

STAGE_SCHEMA = extend(
    STAGES,
    [
        col("time", FLOAT, "Time of the response in seconds."),
        col("needed", BOOL, "The verdict can change a score; others are never asked for."),
    ],
)

ANSWER_SCHEMA = pa.schema(
    [
        col("equivalent", BOOL, "The response says what the reference says, by the rubric."),
        col("rationale", STRING, "The judge's reason."),
    ]
)
JUDGEMENT_SCHEMA = extend(JUDGEMENTS, ANSWER_SCHEMA)

SCORE_SCHEMA = extend(
    SCORES,
    [
        col("task", STRING, "T1 to T7, T8-A, T8-B or T8-C."),
        col("position", INT, "Place of the target in time, from 1."),
        col("sequence_length", INT, "Targets of the interaction."),
        col(
            "status",
            STRING,
            "T1 to T7: success, early, late, wrong_content, missing, judge_error; T8: matched, "
            "order_conflict, wrong_content, no_timely_response, missing_trajectory, judge_error; "
            "null while a verdict is missing.",
        ),
        col("success", INT, "1 for success and matched, else 0; null if unscored."),
        col("output_index", INT, "Response taken, by its first output's place in the file."),
        col("time", FLOAT, "Time of that response in seconds."),
        col(
            "sequence_success",
            INT,
            "The success again, where every target of the interaction is scored.",
        ),
        col("complete", INT, "Interactions: 1 if every target succeeded, else 0."),
        col("long_sequence", INT, "Interactions: 1 if too long for expected_complete, else 0."),
        col("successes", INT, "Interactions: targets that succeeded."),
        col("n_outputs", INT, "Interactions: effective responses."),
        col("unmatched", INT, "Interactions: effective responses beyond the successes."),
        col("n_pre_query", INT, "Interactions: outputs before the request."),
        col("observed_seconds", FLOAT, "Interactions: request to end of clip; 0 if missing."),
        col("missing_trajectory", INT, "Interactions: 1 if the output is missing, else 0."),
    ],
)
