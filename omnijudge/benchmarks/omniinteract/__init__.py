"""OmniInteract: IA-QTF1, interruption suite, nested chains (arXiv:2605.26485)."""

from omnijudge.benchmarks.omniinteract.benchmark import OmniInteract

benchmark = OmniInteract()
