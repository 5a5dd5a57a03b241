"""Omni-InteractScope: timely and right responses, explicit tasks and assistance."""

from omnijudge.benchmarks.omni_interactscope.benchmark import OmniInteractScope

benchmark = OmniInteractScope()
