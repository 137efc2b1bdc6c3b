"""The functions that steps are made of, by what determines their code."""

from __future__ import annotations

from ..ir.dtypes import DType
from .cpu.routine_steps import RoutineForm
from .cpu.small import SmallProduct
from .llvm.form import Form
from .llvm.lanes_form import LaneForm

__all__ = ["Function", "Product"]

Product = DType | SmallProduct
Function = Form | LaneForm | RoutineForm | Product
