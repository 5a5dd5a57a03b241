"""Omni-DuplexEval: real-time description and proactive reminders."""

from omnijudge.benchmarks.omni_duplexeval.benchmark import OmniDuplexEval

benchmark = OmniDuplexEval()
