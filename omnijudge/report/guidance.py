"""How to read a benchmark's numbers: short, and honest about what they hide."""

from __future__ import annotations

from omnijudge.report.results import Results

_EVERY_BENCHMARK = (
    "A value is taken over all units of a group together; it is no mean of values per video.",
    "An interval says how much the value would move with other videos of the same kind. It knows "
    "nothing of the judge's errors, nor of what another prompt would have changed.",
    "Two overlapping intervals are no test: all systems saw the same videos, so a difference is "
    "surer than its two intervals look. Compare in pairs (omnijudge compare).",
    "The first of many owes something to luck; expect it to fall a little on new videos.",
    "Judge, prompts and profile are part of every number. Compare only what agrees in all three.",
)

_BAD_ANSWER = (
    "In this measure silence can beat a bad answer: silence costs one miss, a bad answer the miss "
    "and a false positive, and speech past the end one more. Read FP and FN beside F1."
)
_BAD_ANSWER_PAPER = (
    "Silence costs one miss, a bad answer one false positive (and the miss, if it earns nothing), "
    "speech past the end one more: silence can beat a bad answer. Read FP and FN beside F1."
)

_OMNIINTERACT = (
    "Precision and recall are no shares of slots: acknowledgements earn credit, and one slot can "
    "cost up to three false positives.",
    "PAQ, CSM-SR and CSM-AS are about the interrupted slots in which a system spoke. A silent "
    "system has few of them, or none, and then they mean little; see NOR.",
    "Speech outside every slot counts against All, and against no single category.",
)

_INTERACTSCOPE = (
    "On T1 to T7 each target takes the next response, whatever it says: one superfluous early "
    "response shifts every later pair of the same interaction.",
    "On T8 extra speech is free: read the recall beside the output rate.",
    "The six-task average gives every task the same weight, however few targets it has.",
    "Responses outside their window are not judged; nothing is known about what they say.",
)

_DUPLEXEVAL = (
    "A reminder sample succeeds only if every one of its events is met in its window; replies "
    "before the event never count.",
    "The success rate of all reminders together and the mean of the three parts differ where the "
    "parts differ in size.",
)

_BENCHMARKS = {
    "omniinteract": _OMNIINTERACT,
    "omni_interactscope": _INTERACTSCOPE,
    "omni_duplexeval": _DUPLEXEVAL,
}


def reading(results: Results) -> list[str]:
    """What a reader should know, the benchmark's own points first."""
    lines = list(_BENCHMARKS.get(results.benchmark, ()))
    scoring = results.manifest.get("scoring") or {}
    if results.benchmark == "omniinteract":
        both = scoring.get("threshold_zeroes_core", True)
        lines.insert(0, _BAD_ANSWER if both else _BAD_ANSWER_PAPER)
        weight = scoring.get("w_ack")
        if weight and scoring.get("core_weight") is None:
            lines.insert(
                1,
                f"A slot answered without an early acknowledgement earns at most {1 - weight:g}; "
                f"the acknowledgement itself up to {weight:g}. Later steps of 1QnA can earn 1.",
            )
    if results.benchmark == "omni_duplexeval" and results.profile != "published":
        lines.append(
            "A description that says nothing of the scene lowers the temporal score of all the "
            "others."
        )
    if results.profile == "published":
        lines.append(
            "Profile published: outputs that are missing leave the denominators, so a system that "
            "fails to answer can gain. Read the number of missing outputs beside every rank."
        )
    return [*lines, *_EVERY_BENCHMARK]
