"""OmniInteract's columns beside the common ones."""

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

UNIT_COLUMNS = [
    col("scene_type", STRING, "multi_turn, nested, 1QnA or offline_math."),
    col("question_type", STRING, "Lower-case question type; for 1QnA the label."),
    col("label", STRING, "Label of a 1QnA answer as annotated."),
    col("t_start", FLOAT, "Start of the slot in seconds."),
    col("t_a", FLOAT, "Moment the answer is due, in seconds."),
    col("t_end", FLOAT, "End of the slot in seconds."),
    col("open_ended", BOOL, "Nothing follows: t_end is t_a plus the tail."),
    col("boundary", STRING, "hard or soft, as annotated."),
    col("is_interrupted", BOOL, "The user cuts the answer off."),
    col("step_index", INT, "Step of a 1QnA task, from 1."),
    col("turn_index", INT, "Turn, from 1; for nested samples the pair."),
    col("pair_index", INT, "Nested pair, from 1."),
    col("role", STRING, "outer or inner, for nested samples."),
    col("question_text", STRING, "What the user asked."),
    col("target_answer", STRING, "Reference answer."),
    col("language", STRING, "Language of the sample."),
    col("is_math", BOOL, "The sample belongs to the maths subset."),
    col("attributes", pa.map_(STRING, STRING), "Further columns of the annotation list."),
]
UNIT_SCHEMA = extend(UNITS, UNIT_COLUMNS)

CHUNK_SCHEMA = CHUNKS

PART = pa.struct(
    [
        ("chunk_id", INT),
        ("part", STRING),
        ("start", FLOAT),
        ("end", FLOAT),
        ("spill", BOOL),
        ("text", STRING),
    ]
)
STAGE_SCHEMA = extend(
    STAGES,
    [
        col(
            "parts",
            pa.list_(PART),
            "Chunks or parts of chunks the text is made of: whole, early or core; in order.",
        ),
    ],
)

ANSWER_SCHEMA = pa.schema(
    [
        col("flag", STRING, "Early stage: neutral or hallucination."),
        col("score", FLOAT, "Score of the stage, 0 to 1."),
        col("trigger_phrase", STRING, "Core stage: earliest words that settle the answer."),
        col("spoiler", BOOL, "Core stage: tells the answer of a later step."),
        col("hallucination", BOOL, "Partial stage: false content."),
        col("parse", STRING, "Published parser: json, number or failed."),
        col("rationale", STRING, "The judge's reason."),
    ]
)
JUDGEMENT_SCHEMA = extend(JUDGEMENTS, ANSWER_SCHEMA)

SCORE_SCHEMA = extend(
    SCORES,
    [
        col("scene_type", STRING, "multi_turn, nested, 1QnA or offline_math."),
        col("category", STRING, "realtime, proactive, nested, 1qna or other, by the slot itself."),
        col("question_type", STRING, "Lower-case question type; for 1QnA the label."),
        col("role", STRING, "outer or inner, for nested samples."),
        col("is_interrupted", BOOL, "The user cuts the answer off."),
        col("is_math", BOOL, "The sample belongs to the maths subset."),
        col("tp", FLOAT, "Soft true positive of the slot, 0 to 1."),
        col("fp", FLOAT, "False positives of the slot (sample rows: unmatched chunks)."),
        col("fn", FLOAT, "False negatives of the slot."),
        col("tp_ack", FLOAT, "Credit of the early stage."),
        col("tp_core", FLOAT, "Credit of the core stage."),
        col("s_ack", FLOAT, "Judge's score of the early stage."),
        col("t_ack", FLOAT, "Time decay of the early stage."),
        col("w_ack", FLOAT, "Weight of the early stage."),
        col("s_core", FLOAT, "Judge's score of the core stage."),
        col("t_core", FLOAT, "Time decay of the core stage."),
        col("w_core", FLOAT, "Weight of the core stage."),
        col("anchor", FLOAT, "Time of the trigger phrase in seconds; null if not found."),
        col("anchor_source", STRING, "phrase, first_chunk or chunk_of_phrase."),
        col("fallback", FLOAT, "Time used where no anchor is found, in seconds."),
        col("t_used", FLOAT, "Time the core stage is credited at, in seconds."),
        col("early_category", STRING, "none, neutral or hallucination."),
        col("fp_early", INT, "FP of an early hallucination."),
        col("fp_low", INT, "FP of a low-quality core answer."),
        col("fp_spill", INT, "FP of speech beyond a hard boundary."),
        col("spill_seconds", FLOAT, "Seconds of speech beyond a hard boundary."),
        col("response_delay", FLOAT, "t_used - t_a where the core earned credit, in seconds."),
        col("spoiler", BOOL, "The core answer tells a later step."),
        col("has_output", BOOL, "At least one chunk, blank ones included."),
        col("paq", FLOAT, "Partial-answer quality of an interrupted slot."),
        col("paq_judged", BOOL, "The partial answer was judged."),
        col("partial_low", BOOL, "Partial answer below its threshold."),
        col("partial_hallucination", BOOL, "Partial answer with false content."),
        col("nccs", FLOAT, "Pair rows: score of the nested pair."),
        col("missed_outer", INT, "Pair rows: 1 if the outer earned nothing."),
        col("missed_inner", INT, "Pair rows: 1 if the inner earned nothing."),
        col("order_error", INT, "Pair rows: 1 if both earned credit in the wrong order."),
        col("unmatched", INT, "Sample rows: chunks that fit no slot."),
        col("missing_output", BOOL, "The system's output is missing or unreadable."),
    ],
)
