"""A language model of 1.4 MB with random weights: every mechanism of a judge, none of its sense.

The folder looks like one from a model hub (Qwen2 architecture, byte-level BPE tokenizer, chat
template with a thinking switch, safetensors), so that loading, templates, structured output,
thinking budgets and prefix caching run for real, within seconds and without a GPU. Its answers
mean nothing.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

SENTENCES = (
    "The kettle is boiling, so the assistant says that the water is ready for the tea.",
    "Count the red cups on the table and tell me as soon as there are three of them.",
    "The answer comes four seconds late, but it names the right person and the right place.",
    "Did the reply mention the second step before the cook had begun it?",
    "Give a score between 0 and 1 and a short reason for the score, as one JSON object.",
    "When the light turns green, say so once; do not repeat it when it turns red again.",
    "水烧开了，助手马上提醒用户可以泡茶。",
    "请数一数桌上的红色杯子，数到三个时告诉我。",
    "回答晚了四秒，但人物和地点都说对了。",
    "厨师还没有开始第二步，助手就已经提前说出了结果吗？",
    "请给出零到一之间的分数，并用一句话说明理由。",
    "绿灯亮起时提醒一次，红灯亮起时不要重复。",
)
"""What the tokenizer is trained on."""

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] not in ('system', 'user', 'assistant') -%}"
    "{{ raise_exception('there is no role ' + message['role']) }}"
    "{%- endif -%}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{ '<|im_start|>assistant\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false -%}"
    "{{ '<think>\n\n</think>\n\n' }}"
    "{%- endif -%}"
    "{%- endif -%}"
)

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
THINKING_TOKENS = ("<think>", "</think>")

VOCABULARY = 600
POSITIONS = 2048


def make_tiny_model(folder: str | os.PathLike[str], seed: int = 0) -> Path:
    """Writes the tiny model; equal seeds give equal bytes.

    Args:
        folder: folder to write to; made if it is not there.
        seed: of the random weights.

    Returns:
        The folder.
    """
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(out)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.convert_tokens_to_ids("<|im_end|>"),
        pad_token_id=tokenizer.convert_tokens_to_ids("<|endoftext|>"),
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(config)
    model.save_pretrained(out)
    plain_json(out / "config.json")
    plain_json(out / "generation_config.json")
    return out


def make_tokenizer(extra_tokens: tuple[str, ...] = (), template: str = CHAT_TEMPLATE) -> Any:
    """The byte-level BPE tokenizer of the tiny model, as transformers loads it.

    Args:
        extra_tokens: more special tokens, such as those that stand for an image.
        template: chat template.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    base = Tokenizer(models.BPE())
    base.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    base.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(THINKING_TOKENS) - len(extra_tokens),
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    base.train_from_iterator(SENTENCES, trainer)
    # Thinking marks are ordinary text to a decoder: they are parsed off the answer, not hidden.
    base.add_tokens([AddedToken(t, special=False, normalized=False) for t in THINKING_TOKENS])
    base.add_special_tokens(list(extra_tokens))
    return PreTrainedTokenizerFast(
        tokenizer_object=base,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=template,
        model_max_length=POSITIONS,
        clean_up_tokenization_spaces=False,
    )


def plain_json(path: Path) -> None:
    """Drops the library's version from a written file, so that bytes outlive an upgrade."""
    values = json.loads(path.read_text(encoding="utf-8"))
    values.pop("transformers_version", None)
    path.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n", encoding="utf-8")
