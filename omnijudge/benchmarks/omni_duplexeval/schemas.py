"""Omni-DuplexEval's columns beside the common ones."""

from __future__ import annotations

import pyarrow as pa

from omnijudge.tables import (
    BOOL,
    CHUNKS,
    FLOAT,
    INT,
    SCORES,
    STAGES,
    STRING,
    UNITS,
    col,
    extend,
)

CAPTION = pa.struct([("start", FLOAT), ("end", FLOAT), ("text", STRING)])

UNIT_SCHEMA = extend(
    UNITS,
    [
        col("split", STRING, "Split of the benchmark."),
        col("scene", STRING, "rtd (real-time description) or pr (proactive reminder)."),
        col("task", STRING, "Reminder task: proactive_reminder, post_event_reminder, correction."),
        col("question_text", STRING, "Instruction given to the system."),
        col("references", pa.list_(STRING), "Reference descriptions, or the right correction."),
        col("language", STRING, "Language of the sample."),
        col("event_time", FLOAT, "Time of the event in seconds; null on other rows."),
        col("video_duration", FLOAT, "Length of the clip in seconds, as used for windows."),
        col("video_type", STRING, "Kind of video, as annotated."),
        col("media", STRING, "The clip, from the folder of the data: a file, or a table and row."),
        col("media_digest", STRING, "Hash of the clip; null if it was not looked at."),
        col("media_state", STRING, "Whether the clip can be used; null if it was not looked at."),
        col("media_notes", STRING, "What is unusual about the clip, separated by commas."),
        col("media_seconds", FLOAT, "How far the clip can be read, in seconds."),
        col("has_audio", BOOL, "The clip has an audio track with sound in it."),
        col("captions", pa.list_(CAPTION), "Time-stamped captions of the clip."),
        col("window_evidence", STRING, "Kind of evidence this run has for windows, null: none."),
        col("content_evidence", STRING, "Kind of evidence this run has for the content score."),
        col("attributes", pa.map_(STRING, STRING), "Further columns of the annotation."),
    ],
)

CHUNK_SCHEMA = extend(
    CHUNKS, [col("event_time", FLOAT, "Time that counts for reminders, in seconds.")]
)

STAGE_SCHEMA = extend(
    STAGES,
    [
        col("start", FLOAT, "Start of the sentence in seconds."),
        col("end", FLOAT, "End of the sentence in seconds."),
        col("window_start", FLOAT, "Start of the window of evidence in seconds."),
        col("window_end", FLOAT, "End of the window of evidence in seconds."),
        col(
            "evidence",
            STRING,
            "What the judge gets: text, video, frames, frames+audio, captions, references or "
            "unknown; null if what it needs is missing, so that it cannot be asked.",
        ),
        col("evidence_note", STRING, "Why evidence is missing or less than asked for."),
        col("frame_count", INT, "Frames shown to the judge."),
    ],
)

ANSWER_SCHEMA = pa.schema(
    [
        col("temporal_score", FLOAT, "How well the words fit their moment, 0 to 3."),
        col("is_relevant", FLOAT, "1 if the sentence answers the instruction, else 0."),
        col("content_score", FLOAT, "How right the whole description is, 0 to 3."),
        col("success_score", FLOAT, "1 if the event was served, else 0."),
        col("without_duration", BOOL, "The published script recorded no length (empty error)."),
        col("reasoning", STRING, "The judge's reason."),
    ]
)

SCORE_SCHEMA = extend(
    SCORES,
    [
        col("split", STRING, "Split of the benchmark."),
        col("scene", STRING, "rtd (real-time description) or pr (proactive reminder)."),
        col("output_state", STRING, "State of the system's output for the sample."),
        col("temporal", FLOAT, "Sample: temporal sensitivity, 0 to 100."),
        col("content", FLOAT, "Sample: content consistency, 0 to 100."),
        col("overall", FLOAT, "Sample: mean of both, 0 to 100."),
        col("success", FLOAT, "Reminder sample or event: 100 if it succeeded, else 0."),
        col("outcome", STRING, "success, partial, no_answer, wrong_answer or judge_error."),
        col("no_answer_detail", STRING, "Why no window holds a reply."),
        col("relevant", INT, "Sentence: 1 if it answers the instruction, else 0."),
        col("score", FLOAT, "Sentence or event: the judge's score as it counts."),
        col("start", FLOAT, "Sentence: start in seconds."),
        col("end", FLOAT, "Sentence: end in seconds."),
        col("windows", INT, "Sentence: windows it has inside the clip."),
        col("event_time", FLOAT, "Event: its time in seconds."),
        col("reply_delay", FLOAT, "Event: first reply in the window minus event time, seconds."),
        col("irrelevant_ratio", FLOAT, "Sample: share of irrelevant sentences, by count."),
        col("mean_relevant_score", FLOAT, "Sample: mean score of relevant sentences, 0 to 3."),
        col("judge_errors", INT, "Sample: sentences and content calls without a verdict."),
        col("speaking_seconds", FLOAT, "Sample: union of the sentences' intervals, seconds."),
        col("video_duration", FLOAT, "Length of the clip in seconds."),
        col("early_only", BOOL, "Sample: spoke, but only before the first event."),
        col("evidence", STRING, "Evidence of the window scores (sentence, sample) or the event's."),
        col("frame_count", INT, "Frames behind the window scores."),
        col("content_evidence", STRING, "Sample: evidence of the content score."),
        col("content_frame_count", INT, "Sample: frames behind the content score."),
    ],
)
