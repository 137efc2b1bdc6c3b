"""Functions of neural networks, activations so far: ``tg.nn``."""

from ..engine.namespace import space as _space

_functions = _space("nn")
globals().update(_functions)
__all__ = sorted(_functions)
