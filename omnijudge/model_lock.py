"""The lock file of a run (``--lock FILE``): its models as resolved, for nodes without network.

Written where it is not there yet, on a machine that reaches the model hub; read everywhere else.
It pins the revision of every hub model, and refuses a model that is not the one it names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from omnijudge.config import PanelConfig
from omnijudge.errors import ConfigError

if TYPE_CHECKING:
    from omnijudge.asking import JudgeSeat
    from omnijudge.config import JudgeConfig, RunConfig


@dataclass(frozen=True, slots=True)
class Locked:
    """One judge's model.

    Attributes:
        engine: its engine.
        model: as configured: a hub id, a served name; None where the engine has none. Folders
            are told by their identity, not by their place.
        asked: revision as configured.
        revision: of a hub model, as resolved.
        identity: as it enters every fingerprint.
    """

    engine: str
    model: str | None
    asked: str | None
    revision: str | None
    identity: str


@dataclass(frozen=True, slots=True)
class ModelLock:
    """The models of a run by the name of the judge."""

    path: str
    judges: Mapping[str, Locked]

    def applied_to(self, config: RunConfig) -> RunConfig:
        """The configuration with every revision that the lock pins.

        Raises:
            ConfigError: the lock is about other judges or models.
        """
        judges = [self._applied(j) for j in config.judges]
        if isinstance(config.judge, PanelConfig):
            panel = config.judge.model_copy(update={"panel": tuple(judges)})
            return config.model_copy(update={"judge": panel})
        return config.model_copy(update={"judge": judges[0]})

    def _applied(self, judge: JudgeConfig) -> JudgeConfig:
        locked = self.judges.get(judge.name)
        if locked is None:
            raise ConfigError(f"--lock {self.path}: knows no judge {judge.name!r}; {self._again()}")
        if locked.revision is None:
            return judge
        if locked.model != judge.model:
            raise ConfigError(
                f"--lock {self.path}: judge {judge.name}: holds model {locked.model}, the "
                f"configuration names {judge.model}; {self._again()}"
            )
        if judge.revision not in (locked.asked, locked.revision):
            raise ConfigError(
                f"--lock {self.path}: judge {judge.name}: was made for revision {locked.asked}, "
                f"the configuration names {judge.revision}; {self._again()}"
            )
        return judge.model_copy(update={"revision": locked.revision})

    def check(self, seats: Sequence[JudgeSeat]) -> None:
        """Compares the models found here with those of the lock.

        Raises:
            ConfigError: one is another model.
        """
        for seat in seats:
            locked = self.judges[seat.judge.name]
            found = seat.asker.identity.text
            if (locked.engine, locked.identity) != (seat.judge.engine, found):
                raise ConfigError(
                    f"--lock {self.path}: judge {seat.judge.name}: the model here is not the "
                    f"locked one (found {found}, locked {locked.identity}); {self._again()}"
                )

    def _again(self) -> str:
        return "remove the file to lock anew, on a machine with network"


def read_lock(path: str | None) -> ModelLock | None:
    """Reads a lock file; None if there is none (yet).

    Raises:
        ConfigError: the file cannot be read.
    """
    if path is None or not Path(path).exists():
        return None
    try:
        value = orjson.loads(Path(path).read_bytes())
        judges = {
            str(name): Locked(
                engine=str(j["engine"]),
                model=_text(j["model"]),
                asked=_text(j["asked"]),
                revision=_text(j["revision"]),
                identity=str(j["identity"]),
            )
            for name, j in value["judges"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise ConfigError(
            f"--lock {path}: is no lock file of omnijudge ({e}); remove it to lock anew"
        ) from None
    return ModelLock(path, judges)


def settle_lock(
    path: str | None,
    lock: ModelLock | None,
    config: RunConfig,
    seats: Sequence[JudgeSeat],
    messages: list[str],
) -> None:
    """Checks the models against the lock, or writes it where it is not there yet.

    Args:
        path: as given on the command line, None without a lock.
        lock: what was read.
        config: the run, revisions as configured.
        seats: the judges with their models as resolved.
        messages: takes a sentence if the file is written.

    Raises:
        ConfigError: another model, or the file cannot be written.
    """
    if path is None:
        return
    if lock is not None:
        lock.check(seats)
        return
    judges = {}
    for judge, seat in zip(config.judges, seats, strict=True):
        identity = seat.asker.identity
        revision = identity.details.get("revision")
        model = seat.judge.model if revision is not None or seat.judge.engine == "openai" else None
        judges[seat.judge.name] = {
            "engine": seat.judge.engine,
            "model": model,
            "asked": judge.revision if revision is not None else None,
            "revision": revision,
            "identity": identity.text,
        }
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    data = orjson.dumps({"judges": judges}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    try:
        partial.write_bytes(data)
        os.replace(partial, target)
    except OSError as e:
        raise ConfigError(f"--lock {path}: cannot be written ({e.strerror})") from e
    messages.append(f"--lock {path}: written; later runs and shards read it")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
