"""Transcripts of invented systems for real annotations.

A simulated system has a *temper*: how soon it acknowledges a question, how often it guesses, how
late, how truly and how long it answers. What it says comes from the annotated answers, so that a
judge can tell the tempers apart. Everything follows from the seed, the system's name and the
sample's id, so that any part can be made again alone, anywhere.
"""

from omnijudge.simulate.outputs import Recording, Simulated, simulate_outputs
from omnijudge.simulate.tempers import TEMPERS, Temper, temper_named
from omnijudge.simulate.transcript import simulate_transcript

__all__ = [
    "TEMPERS",
    "Recording",
    "Simulated",
    "Temper",
    "simulate_outputs",
    "simulate_transcript",
    "temper_named",
]
