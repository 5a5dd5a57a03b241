"""What a run lost, and what it was told about its data, in words and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

STATUSES = ("ok", "repaired", "invalid", "error", "not asked")


@dataclass(frozen=True, slots=True)
class Loss:
    """One kind of loss.

    Attributes:
        what: what was lost, as a noun.
        count: how many; 0 is worth saying for the kinds that are always listed.
        of: out of how many, where that is known.
        meaning: what the run made of it.
    """

    what: str
    count: int
    of: int | None
    meaning: str

    def __str__(self) -> str:
        share = "" if self.of is None else f" of {self.of:,}"
        return f"{self.count:,}{share} {self.what}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of problem found in the inputs.

    Attributes:
        code: its short name.
        level: error or warning.
        count: how often it occurs.
        systems: systems concerned; empty if it is about the annotations.
        example: one of its messages, with the place.
    """

    code: str
    level: str
    count: int
    systems: tuple[str, ...]
    example: str


def answers_by_status(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Answers of all systems and stages by their end."""
    total = dict.fromkeys(STATUSES, 0)
    for stages in _counts(manifest).get("answers", {}).values():
        for by_status in stages.values():
            for status, n in by_status.items():
                total[status] = total.get(status, 0) + n
    return total


def answers_by_stage(manifest: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Answers of all systems by stage and end."""
    found: dict[str, dict[str, int]] = {}
    for stages in _counts(manifest).get("answers", {}).values():
        for stage, by_status in stages.items():
            counts = found.setdefault(stage, dict.fromkeys(STATUSES, 0))
            for status, n in by_status.items():
                counts[status] = counts.get(status, 0) + n
    return found


def losses(manifest: Mapping[str, Any]) -> list[Loss]:
    """What was lost on the way; the kinds a reader expects are listed with 0, too."""
    counts = _counts(manifest)
    answers = answers_by_status(manifest)
    asked = sum(answers.values())
    missing = sum((counts.get("missing_outputs") or {}).values())
    expected = counts.get("samples", 0) * counts.get("systems", 0)
    published = (manifest.get("scoring") or {}).get("profile") == "published"
    found = [
        Loss(
            "samples with unusable annotations", int(counts.get("samples_unusable", 0)),
            counts.get("samples_listed"), "left out for all systems",
        ),
        Loss(
            "outputs missing or unreadable", missing, expected or None,
            "left out of the denominators" if published else "scored as silence",
        ),
        Loss("answers invalid after all attempts", answers["invalid"], asked, "no number"),
        Loss("questions without an answer (errors)", answers["error"], asked, "no number"),
    ]  # fmt: skip
    if counts.get("samples_incomplete"):
        found.append(
            Loss(
                "samples not judged to their end", int(counts["samples_incomplete"]),
                counts.get("samples"), "left out with all their units, for all systems",
            )
        )  # fmt: skip
    if answers["not asked"]:
        found.append(
            Loss("questions not asked", answers["not asked"], asked, "the run stopped early")
        )
    if answers["repaired"]:
        found.append(Loss("answers repaired", answers["repaired"], asked, "used, and marked"))
    found.append(
        Loss(
            "units unscored", int(counts.get("unscored_units", 0)), None,
            "null: outside all sums; bounds show what they could change",
        )
    )  # fmt: skip
    return found


def findings(manifest: Mapping[str, Any]) -> list[Finding]:
    """Problems of the inputs by code, errors first, most frequent first."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for p in manifest.get("problems") or ():
        if p.get("level") in ("error", "warning"):
            groups.setdefault((p["level"], p["code"]), []).append(p)
    found = [
        Finding(
            code, level, sum(int(p.get("count") or 1) for p in ps), _systems(ps), _example(ps[0])
        )
        for (level, code), ps in groups.items()
    ]
    # The manifest keeps a bounded list of problems and a count of every code.
    listed = {(f.level, f.code) for f in found}
    for level, key in (("error", "problems"), ("warning", "warnings")):
        for code, n in (_counts(manifest).get(key) or {}).items():
            if (level, code) not in listed:
                found.append(Finding(code, level, int(n), (), ""))
    return sorted(found, key=lambda f: (f.level, -f.count, f.code))


def stopped(manifest: Mapping[str, Any]) -> str | None:
    """Why the run is not whole; None if it is."""
    state = manifest.get("state")
    if manifest.get("stopped"):
        return str(manifest["stopped"])
    return None if state in (None, "done") else f"the run is {state}"


def _counts(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    return manifest.get("counts") or {}


def _systems(problems: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(p["system"]) for p in problems if p.get("system")))


def _example(problem: Mapping[str, Any]) -> str:
    # The file's own name is enough to find it, and says nothing about the machine.
    file = str(problem.get("file") or "").replace("\\", "/").rsplit("/", 1)[-1]
    place = f"{file}: {problem['place']}" if problem.get("place") else file
    return f"{place}: {problem.get('message', '')}"
