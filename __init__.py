"""tilegrad: from a numerical Python function to its derivatives and its machine code.

``import tilegrad as tg``: arrays and functions by NumPy's names, transforms by JAX's.
"""

from math import e, inf, nan, pi

from . import linalg, nn, special
from .engine import namespace as _namespace
from .engine import tree
from .engine.array import Array
from .engine.array import evaluate as eval  # noqa: F401 - not for star imports
from .engine.config import config
from .engine.counters import counters
from .engine.directional import jvp, linear_transpose, linearize, vjp
from .engine.gradient import grad, stop_gradient, value_and_grad
from .engine.jacobian import hessian, hvp, jacfwd, jacobian, jacrev
from .engine.jit import jit
from .engine.namespace import *  # noqa: F403 - its table holds the names
from .engine.namespace import (  # noqa: F401 - Python's own names, not for star imports
    abs,
    all,
    any,
    divmod,
    max,
    min,
    pow,
    round,
    sum,
)
from .engine.signature import shape_dtype as ShapeDtype  # noqa: N812 - JAX's name
from .engine.trace import trace
from .engine.vmap import vmap
from .ir.dtypes import (
    DType,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .ir.errors import (
    ConvergenceError,
    DTypeError,
    RetraceWarning,
    ShapeError,
    TilegradError,
    TracerError,
    UnsupportedError,
)

__version__ = "0.1.0"

bool = bool_  # the Array API's name
newaxis = None

__all__ = [
    *_namespace.__all__,
    "Array",
    "ConvergenceError",
    "DType",
    "DTypeError",
    "RetraceWarning",
    "ShapeDtype",
    "ShapeError",
    "TilegradError",
    "TracerError",
    "UnsupportedError",
    "bool_",
    "complex64",
    "complex128",
    "config",
    "counters",
    "e",
    "float32",
    "float64",
    "grad",
    "hessian",
    "hvp",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linalg",
    "linear_transpose",
    "linearize",
    "nan",
    "newaxis",
    "nn",
    "pi",
    "special",
    "stop_gradient",
    "trace",
    "tree",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "value_and_grad",
    "vjp",
    "vmap",
]
