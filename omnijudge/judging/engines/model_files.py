"""Which model a name stands for: digests of a folder's files, or a hub id with its revision."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from omnijudge.errors import ResourceError

HUB_TIMEOUT = 10.0
"""Seconds the model hub gets to answer before the local cache is asked."""

SETTLED = 2.0
"""Seconds after which a changed file can be told by its time of change (clocks tick coarsely)."""

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt")
_TEXTS = {"merges.txt", "vocab.txt"}
_SUFFIXES = (".json", ".jinja", ".model", ".tiktoken", ".py")
_NOT_WEIGHTS = {"training_args.bin", "optimizer.pt", "scheduler.pt", "optimizer.bin"}

_digests: dict[tuple[str, int, int], str] = {}


@dataclass(frozen=True, slots=True)
class Model:
    """A model that was found.

    Attributes:
        name: as configured.
        location: what to load: the folder or file, the hub id, or the cached snapshot of a hub
            id when the hub cannot be reached.
        revision: commit of a hub model, None for files.
        pinned: False if a hub model was asked for without a fixed revision.
    """

    name: str
    location: str
    revision: str | None = None
    pinned: bool = True

    @property
    def is_local(self) -> bool:
        """Whether nothing has to be fetched to load it."""
        return Path(self.location).exists()


def find_model(name: str, revision: str | None, where: str) -> Model:
    """Finds a model: a folder, a single file, or a hub id whose revision gets resolved.

    Args:
        name: path or hub id.
        revision: commit, tag or branch of a hub model; None for its main branch.
        where: what to name in errors, such as ``judge main``.

    Raises:
        ResourceError: there is no such model, or the hub is out of reach and the model is not in
            the local cache.
    """
    if Path(name).exists():
        return Model(name, name)
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ResourceError(f"{where}: model: there is no folder {name}; check the path")
    if revision and re.fullmatch(r"[0-9a-f]{40}", revision):
        model = Model(name, _cached_location(name, revision) or name, revision)
        return model if _is_complete(model) else Model(name, name, revision)
    return _ask_hub(name, revision, where)


def check_complete(model: Model, where: str, weights: bool = True) -> None:
    """Checks that a local model folder holds all that loading will need.

    Args:
        model: a model; one that still has to be fetched from a hub passes.
        where: what to name in errors.
        weights: False if weights are not read (dummy weights).

    Raises:
        ResourceError: a file is missing or cut short; the message names it.
    """
    folder = Path(model.location)
    if not folder.is_dir():
        return
    named = f"{where}: model: the folder {folder}"
    names = {p.name for p in folder.iterdir()}
    if "config.json" not in names and "params.json" not in names:
        raise ResourceError(f"{named} has no config.json; it is no model folder, or not complete")
    if not names & set(_TOKENIZERS) and not any(n.endswith(".tiktoken") for n in names):
        raise ResourceError(f"{named} has no tokenizer file; copy {_TOKENIZERS[0]} beside it")
    if not weights:
        return
    shards = sorted(n for n in names if n.endswith(_WEIGHTS) and n not in _NOT_WEIGHTS)
    if not shards:
        raise ResourceError(f"{named} holds no weights ({', '.join(_WEIGHTS)}); copy them there")
    missing = sorted(_listed_shards(folder) - names)
    if missing:
        raise ResourceError(
            f"{named} is not complete: {missing[0]} is missing"
            + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
            + "; copy or download the model again"
        )
    for shard in shards:
        fault = _weights_fault(folder / shard)
        if fault:
            raise ResourceError(f"{named}: {shard} {fault}; copy or download it again")


def file_digests(path: str | os.PathLike[str]) -> dict[str, str]:
    """SHA-256 of every file that can change a model's answers, by name inside the folder.

    Weights (safetensors where there are any, else the other kinds), configuration, tokenizer and
    chat templates count; read-me files, licences, pictures and folders do not. A single file
    gives one digest. Digests are kept in memory by path, size and time of change.
    """
    root = Path(path)
    if root.is_file():
        return {"model": _digest(root)}
    files = [p for p in root.iterdir() if p.is_file() and p.name not in _NOT_WEIGHTS]
    weights = [p for p in files if p.suffix in _WEIGHTS]
    if any(p.suffix == ".safetensors" for p in weights):
        weights = [p for p in weights if p.suffix == ".safetensors"]
    rest = [p for p in files if p.suffix in _SUFFIXES or p.name in _TEXTS]
    chosen = sorted([*weights, *rest, *root.glob("additional_chat_templates/*.jinja")])
    with ThreadPoolExecutor(max_workers=8) as pool:  # hashing lets go of the interpreter lock
        digests = list(pool.map(_digest, chosen))
    return {p.relative_to(root).as_posix(): d for p, d in zip(chosen, digests, strict=True)}


def combined_digest(digests: dict[str, str]) -> str:
    """One SHA-256 over file names and digests."""
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return hashlib.sha256(lines.encode()).hexdigest()


def _is_complete(model: Model) -> bool:
    try:
        check_complete(model, "")
    except ResourceError:
        return False
    return True


def _digest(path: Path) -> str:
    status = path.stat()
    key = (str(path.resolve()), status.st_size, status.st_mtime_ns)
    known = _digests.get(key)
    if known is not None:
        return known
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if time.time() - status.st_mtime > SETTLED:
        _digests[key] = digest
    return digest


def _listed_shards(folder: Path) -> set[str]:
    listed: set[str] = set()
    for index in folder.glob("*.index.json"):
        try:
            content = json.loads(index.read_text(encoding="utf-8"))
            listed.update(content["weight_map"].values())
        except (OSError, ValueError, KeyError, AttributeError):
            continue  # an index of another kind; loading will tell
    return listed


def _weights_fault(path: Path) -> str | None:
    """What is wrong with a weights file, from its first bytes and its size."""
    size = path.stat().st_size
    if size == 0:
        return "is empty"
    with path.open("rb") as file:
        start = file.read(8)
        if start == b"version ":
            return "is a Git LFS pointer, not the weights"
        if path.suffix != ".safetensors":
            return None
        # The format: header length (8 bytes, little endian), JSON header, then the tensors.
        length = int.from_bytes(start, "little")
        if length > size - 8:
            return "is cut short"
        try:
            header = json.loads(file.read(length))
            ends = [v["data_offsets"][1] for k, v in header.items() if k != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError):
            return "has no readable header"
    expected = 8 + length + max(ends, default=0)
    return f"is cut short ({size} of {expected} bytes)" if size < expected else None


def _ask_hub(name: str, revision: str | None, where: str) -> Model:
    pinned = revision is not None and revision != "main"
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError as e:
        raise ResourceError(
            f"{where}: model: {name} is no folder here, and the package huggingface_hub that "
            "would find it on the model hub is not installed; it comes with vLLM"
        ) from e
    try:
        info = huggingface_hub.HfApi().model_info(name, revision=revision, timeout=HUB_TIMEOUT)
        return Model(name, name, str(info.sha), pinned)
    except errors.GatedRepoError as e:
        raise ResourceError(
            f"{where}: model: {name} asks for consent to its licence on the model hub; accept it "
            "there and set HF_TOKEN"
        ) from e
    except errors.RevisionNotFoundError as e:
        raise ResourceError(f"{where}: revision: {name} has no revision {revision!r}") from e
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as e:
        raise ResourceError(
            f"{where}: model: {name} is neither a folder here nor a model on the hub; check the "
            "name (a private model needs HF_TOKEN)"
        ) from e
    except Exception as e:  # no network, a proxy's answer, offline mode: as many types as causes
        cached = _cached_location(name, revision or "main")
        if cached is None:
            raise ResourceError(
                f"{where}: model: the model hub cannot be reached and {name} is not in the local "
                "cache; download it on a machine with network, or name a folder that holds it"
            ) from e
        return Model(name, cached, Path(cached).name, pinned)


def _cached_location(name: str, revision: str) -> str | None:
    """Folder of a hub model's snapshot in the local cache, if it is there."""
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    found = try_to_load_from_cache(name, "config.json", revision=revision)
    return str(Path(found).parent) if isinstance(found, str) else None
