"""tilegrad: from a numerical Python function to its derivatives and its machine code.

``import tilegrad as tg``: arrays and functions by NumPy's names, transforms by JAX's.
"""

from math import e, inf, nan, pi

from . import linalg, nn, special
from .engine import checkpoint_policies, debug, tree
from .engine import namespace as _namespace
from .engine.array import Array
from .engine.array import evaluate as eval  # noqa: F401 - not for star imports
from .engine.associative_scan import associative_scan
from .engine.branches import cond, switch
from .engine.callbacks import pure_callback
from .engine.check_grads import check_grads, verify_ad
from .engine.checkpoint import checkpoint, checkpoint_name, remat
from .engine.collectives import (
    all_gather,
    axis_index,
    axis_size,
    pmax,
    pmean,
    pmin,
    ppermute,
    psum,
    psum_scatter,
)
from .engine.config import config
from .engine.counters import counters
from .engine.custom_jvp import custom_jvp
from .engine.custom_solves import custom_linear_solve, custom_root
from .engine.custom_vjp import custom_vjp
from .engine.directional import jvp, linear_transpose, linearize, vjp
from .engine.explain_remat import explain_remat
from .engine.gradient import grad, stop_gradient, value_and_grad
from .engine.jacobian import hessian, hvp, jacfwd, jacobian, jacrev
from .engine.jet import jet, laplacian
from .engine.jit import jit
from .engine.loops import fori_loop, scan, while_loop
from .engine.loops import map_ as map  # noqa: F401 - not for star imports
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
    BudgetError,
    CheckError,
    ConvergenceError,
    DeletedError,
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
    "BudgetError",
    "CheckError",
    "ConvergenceError",
    "DType",
    "DTypeError",
    "DeletedError",
    "RetraceWarning",
    "ShapeDtype",
    "ShapeError",
    "TilegradError",
    "TracerError",
    "UnsupportedError",
    "all_gather",
    "associative_scan",
    "axis_index",
    "axis_size",
    "bool_",
    "check_grads",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "complex128",
    "complex64",
    "cond",
    "config",
    "counters",
    "custom_jvp",
    "custom_linear_solve",
    "custom_root",
    "custom_vjp",
    "debug",
    "e",
    "explain_remat",
    "float32",
    "float64",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jet",
    "jit",
    "jvp",
    "laplacian",
    "linalg",
    "linear_transpose",
    "linearize",
    "nan",
    "newaxis",
    "nn",
    "pi",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "psum",
    "psum_scatter",
    "pure_callback",
    "remat",
    "scan",
    "special",
    "stop_gradient",
    "switch",
    "trace",
    "tree",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "value_and_grad",
    "verify_ad",
    "vjp",
    "vmap",
    "while_loop",
]
