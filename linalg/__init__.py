"""Linear algebra, products and norms so far: ``tg.linalg``."""

from ..engine.namespace import space as _space

_functions = _space("linalg")
globals().update(_functions)
__all__ = sorted(_functions)
