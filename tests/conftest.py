"""Property tests look at the same examples every time; `--hypothesis-profile default` looks on."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True)
settings.load_profile("fixed")
