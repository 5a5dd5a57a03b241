"""Models of random weights that see or hear: the way of pictures and sound through a judge.

Like the tiny language model, for mechanics only. Both are of architectures whose vLLM code needs
neither torchvision nor torchaudio, which do not fit the CPU build of PyTorch that vLLM pins.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from omnijudge.testing.tiny_model import POSITIONS, VOCABULARY, make_tokenizer, plain_json

_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{%- if message['content'] is string -%}{{ message['content'] }}{%- else -%}"
    "{%- for part in message['content'] -%}"
    "{%- if part['type'] == 'text' -%}{{ part['text'] }}{%- else -%}{{ 'MEDIA' }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}"
    "{{ '<|im_end|>\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}"
)

_DECODER: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": POSITIONS,
    "tie_word_embeddings": False,
    "bos_token_id": None,
    "eos_token_id": 2,
    "pad_token_id": 0,
}

PICTURE_SIDE = 56
"""Pixels; pictures are shrunk to it."""


def make_tiny_vision_model(folder: str | os.PathLike[str], seed: int = 0) -> Path:
    """Writes a model that takes text and pictures (Idefics3 architecture).

    Args:
        folder: folder to write to; made if it is not there.
        seed: of the random weights.

    Returns:
        The folder.
    """
    import torch
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3Processor,
        LlamaConfig,
    )
    from transformers.models.idefics3.configuration_idefics3 import Idefics3VisionConfig
    from transformers.models.idefics3.image_processing_pil_idefics3 import (
        Idefics3ImageProcessorPil,
    )

    out = Path(folder)
    marks = ("<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
    tiles = tuple(f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2))
    template = _TEMPLATE.replace("MEDIA", "<image>")
    tokenizer = make_tokenizer((*marks, *tiles), template)
    vision = Idefics3VisionConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=PICTURE_SIDE,
        patch_size=14,
    )
    config = Idefics3Config(
        vision_config=vision.to_dict(),
        text_config=LlamaConfig(**_DECODER),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=0,
        dtype="float32",
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Idefics3ForConditionalGeneration(config)
    pictures = Idefics3ImageProcessorPil(
        size={"longest_edge": PICTURE_SIDE},
        max_image_size={"longest_edge": PICTURE_SIDE},
        do_image_splitting=False,
    )
    processor = Idefics3Processor(pictures, tokenizer, image_seq_len=4, chat_template=template)
    return _save(out, model, processor, tokenizer)


def make_tiny_audio_model(folder: str | os.PathLike[str], seed: int = 0) -> Path:
    """Writes a model that takes text and sound (Qwen2-Audio architecture).

    Args:
        folder: folder to write to; made if it is not there.
        seed: of the random weights.

    Returns:
        The folder.
    """
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import (
        Qwen2AudioConfig,
        Qwen2AudioEncoderConfig,
        Qwen2AudioForConditionalGeneration,
        Qwen2AudioProcessor,
        Qwen2Config,
        WhisperFeatureExtractor,
    )

    out = Path(folder)
    template = _TEMPLATE.replace("MEDIA", "Audio 1: <|audio_bos|><|AUDIO|><|audio_eos|>")
    tokenizer = make_tokenizer(("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>"), template)
    hearing = Qwen2AudioEncoderConfig(
        num_mel_bins=32,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=128,
        d_model=64,
    )
    config = Qwen2AudioConfig(
        audio_config=hearing.to_dict(),
        text_config=Qwen2Config(**_DECODER).to_dict(),
        audio_token_index=tokenizer.convert_tokens_to_ids("<|AUDIO|>"),
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2AudioForConditionalGeneration(config)
    processor = Qwen2AudioProcessor(
        WhisperFeatureExtractor(feature_size=hearing.num_mel_bins),
        tokenizer,
        chat_template=template,
    )
    _save(out, model, processor, tokenizer)
    # Newer transformers nest the decoder one level deeper than published weights, and vLLM, do.
    weights = out / "model.safetensors"
    tensors = {
        name.replace("language_model.model.model.", "language_model.model."): tensor
        for name, tensor in load_file(weights).items()
    }
    save_file(tensors, weights, metadata={"format": "pt"})
    return out


def _save(out: Path, model: Any, processor: Any, tokenizer: Any) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    processor.save_pretrained(out)
    tokenizer.save_pretrained(out)
    for name in ("config.json", "generation_config.json"):
        plain_json(out / name)
    return out
