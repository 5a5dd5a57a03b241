"""The smoke judge under the identity of a model folder: ``fakes.folder_lexical:FolderLexical``.

Identity and relevant options are those of engine ``vllm``; no model is loaded.
"""

from __future__ import annotations

from typing import Any

from omnijudge.config import JudgeConfig
from omnijudge.judging.engines.lexical import LexicalEngine
from omnijudge.judging.engines.vllm import VllmEngine
from omnijudge.judging.types import Identity


class FolderLexical(LexicalEngine):
    """See above."""

    @classmethod
    def identity(cls, judge: JudgeConfig) -> Identity:
        return VllmEngine.identity(judge)

    @classmethod
    def relevant_options(cls, judge: JudgeConfig) -> dict[str, Any]:
        return VllmEngine.relevant_options(judge)


def write_model(folder: Any, content: bytes) -> None:
    """A folder that passes for a model: a configuration, a tokenizer and one byte of weights."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    header = b'{"w":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}'
    weights = len(header).to_bytes(8, "little") + header + content[:1]
    (folder / "model.safetensors").write_bytes(weights)
