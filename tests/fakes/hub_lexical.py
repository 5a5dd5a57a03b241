"""The smoke judge as a model of a hub: its revision is looked up in a file, if that is there.

Named in a configuration as ``fakes.hub_lexical:HubLexical``. ``engine_options``:

* ``hub``: JSON file with the revision of every model (the network); gone, nothing is resolved.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from omnijudge.config import JudgeConfig
from omnijudge.errors import ResourceError
from omnijudge.judging.engines.lexical import LexicalEngine
from omnijudge.judging.types import Identity


class HubLexical(LexicalEngine):
    """See above."""

    def __init__(self, judge: JudgeConfig, benchmark_name: str) -> None:
        super().__init__(judge, benchmark_name)
        _resolve(judge)  # what an engine does when it loads the model

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        revision = _resolve(judge)
        remarks = () if judge.revision else (f"model {judge.model} is not pinned",)
        return Identity(f"{judge.model}@{revision}", {"revision": revision}, remarks)

    @classmethod
    def relevant_options(cls, judge: JudgeConfig) -> dict[str, object]:
        return {}


def _resolve(judge: JudgeConfig) -> str:
    if judge.revision and re.fullmatch("[0-9a-f]{40}", judge.revision):
        return judge.revision
    hub = Path(judge.engine_options["hub"])
    if not hub.exists():
        raise ResourceError("the model hub cannot be reached")
    return str(json.loads(hub.read_text(encoding="utf-8"))[judge.model])
