"""What a result was made of: its sample, its annotation and its transcript, as they are now."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omnijudge.benchmarks.omniinteract.batch_summary import is_batch_summary, read_batch_summary
from omnijudge.benchmarks.omniinteract.layout import Listing, Sample, read_manifest, read_root
from omnijudge.benchmarks.omniinteract.published.files import StoredResult, StoredResults
from omnijudge.benchmarks.omniinteract.system_folder import SystemFolder
from omnijudge.config import SystemConfig
from omnijudge.errors import ConfigError, DataError, Problem


@dataclass(frozen=True)
class Inputs:
    """Samples of an import.

    Attributes:
        samples: by id, each with the transcript of the one system (None: there is none).
        problems: what was found on the way.
        listed: whether a list says which samples belong to the run.
    """

    samples: Mapping[str, Sample]
    problems: Sequence[Problem]
    listed: bool


def find_inputs(
    stored: StoredResults,
    system: str,
    manifest: Path | None = None,
    root: Path | None = None,
    outputs: Path | None = None,
) -> Inputs:
    """Finds annotations and transcripts.

    The samples are those of the list that is given; without one, those that the results' own
    summary lists, else all that have a result. Paths inside the results are looked for from the
    folder of the results upwards, then from the working folder.

    Args:
        stored: the results.
        system: name of the system.
        manifest: list of samples.
        root: the benchmark's folder.
        outputs: folder of the system's transcripts.

    Raises:
        ConfigError: a list or folder that is named is not there.
        DataError: no annotation is found at all.
    """
    listing = _listing(system, manifest, root)
    folder = None if outputs is None else SystemFolder(system, SystemConfig(path=str(outputs)))
    problems: list[Problem] = []
    found: dict[str, Sample] = {}
    if listing is None:
        for sample_id, result, item in _named_by_results(stored):
            sample = _sample(sample_id, result, item, stored, problems)
            if sample is not None:
                found[sample_id] = sample
    else:
        problems += [p for p in listing.problems if p.system in (None, system)]
        found = dict(listing.samples)
    for sample_id, sample in found.items():
        path = _transcript(sample, system, folder, stored)
        found[sample_id] = replace(sample, outputs={system: path}, reasons={})
    if not found:
        raise DataError(
            f"import: none of the annotations that {stored.folder} names is found; "
            "say where they are with --manifest or --data-root",
            problems,
        )
    return Inputs(found, problems, listing is not None or bool(stored.summary.items))


def _listing(system: str, manifest: Path | None, root: Path | None) -> Listing | None:
    if manifest is not None and root is not None:
        raise ConfigError("import: give --manifest or --data-root, not both")
    if manifest is not None:
        if not manifest.is_file():
            raise ConfigError(f"--manifest: there is no file {manifest}")
        if is_batch_summary(manifest):
            return read_batch_summary(manifest, {system}, published=True)
        return read_manifest(manifest, set())
    if root is not None:
        if not root.is_dir():
            raise ConfigError(f"--data-root: there is no folder {root}")
        return read_root(root)
    return None


def _named_by_results(
    stored: StoredResults,
) -> list[tuple[str, StoredResult | None, Mapping[str, Any]]]:
    ids = sorted(stored.summary.items or stored.results)
    return [(i, stored.results.get(i), stored.summary.items.get(i, {})) for i in ids]


def _sample(
    sample_id: str,
    result: StoredResult | None,
    item: Mapping[str, Any],
    stored: StoredResults,
    problems: list[Problem],
) -> Sample | None:
    paths = result.paths if result is not None else {}
    gt = str(item.get("gt_json") or paths.get("gt_json") or "")
    scene = str(item.get("scene_type") or (result.scene_type if result is not None else ""))
    annotation = resolve(gt, stored.folder)
    if annotation is None:
        file = stored.folder if result is None else result.file
        problems.append(
            Problem(
                "missing_annotation", "error", str(file), "meta.gt_json",
                f"the annotation {gt!r} is not found; give --manifest or --data-root", sample_id,
            )
        )  # fmt: skip
        return None
    transcript = str(item.get("model_json") or paths.get("model_json") or "")
    return Sample(
        sample_id=sample_id,
        scene_type=scene,
        annotation=annotation,
        source=str(stored.folder),
        place=sample_id,
        video_id=sample_id,
        paths=(gt, transcript),
    )


def _transcript(
    sample: Sample, system: str, folder: SystemFolder | None, stored: StoredResults
) -> Path | None:
    if folder is not None:
        return folder.find(sample)
    for name in (system, ""):
        if name in sample.outputs:
            return sample.outputs[name]
    result = stored.results.get(sample.sample_id)
    item = stored.summary.items.get(sample.sample_id, {})
    named = result.paths["model_json"] if result is not None else str(item.get("model_json") or "")
    return resolve(named, stored.folder)


def resolve(path: str, folder: Path) -> Path | None:
    """A file that the evaluator named from its own working folder; None if it is not found."""
    if not path:
        return None
    here = folder.resolve()
    for base in (here, *here.parents, Path.cwd()):
        if (base / path).is_file():
            return Path(os.path.normpath(base / path))
    return None


def manifest_rows(samples: Mapping[str, Sample], system: str, folder: Path) -> list[dict[str, Any]]:
    """The samples as rows of a manifest that lies in ``folder``."""

    def shown(path: Path) -> str:
        return Path(os.path.relpath(path, folder)).as_posix()

    rows = []
    for sample_id, s in sorted(samples.items()):
        transcript = s.outputs.get(system)
        row: dict[str, Any] = {
            **s.attributes,
            "model": system,
            "sample_id": sample_id,
            "scene_type": s.scene_type,
            "gt_json": shown(s.annotation),
            "video_id": s.video_id,
        }
        if s.language:
            row["language"] = s.language
        if transcript is not None:
            row["model_json"] = shown(transcript)
        # The maths subset is told by the paths of the list, wherever the files lie now.
        if (maths := next((p for p in s.paths if "1q1a_math" in p), None)) is not None:
            row["video"] = maths
        rows.append(row)
    return rows
