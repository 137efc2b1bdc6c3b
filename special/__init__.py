"""Special functions by SciPy's names: ``tg.special``."""

from ..engine.namespace import space as _space

_functions = _space("special")
globals().update(_functions)
__all__ = sorted(_functions)
