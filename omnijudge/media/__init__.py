"""Pictures, sound and captions of clips, for judges that see, hear or read.

Decoding needs the extra ``media`` (PyAV and Pillow); captions do not.
"""

from omnijudge.media.audio import window_wav
from omnijudge.media.captions import Caption, find_captions
from omnijudge.media.frames import clip_frames, set_memory
from omnijudge.media.parts import audio_part, image_part, video_part
from omnijudge.media.probe import MediaInfo, probe
from omnijudge.media.sources import MediaError, source_digest

__all__ = [
    "Caption",
    "MediaError",
    "MediaInfo",
    "audio_part",
    "clip_frames",
    "find_captions",
    "image_part",
    "probe",
    "set_memory",
    "source_digest",
    "video_part",
    "window_wav",
]
