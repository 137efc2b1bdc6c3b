"""Engine tests run on the compiler; ``TILEGRAD_TEST_INTERPRETER=1`` runs them on the reference."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tilegrad.engine import programs, realize, traced
from tilegrad.ir.graph import Graph
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.passes.manager import optimize


class InterpretedPlan:
    """A plan by the reference interpreter."""

    from_disk = False
    short = None

    def __init__(self, graph: Graph) -> None:
        self.graph = optimize(graph)

    def run(self, arrays: list[Any], threads: int = 1) -> list[Any]:
        return [np.array(y) for y in interpret_graph(self.graph, arrays)]  # plans fill new ones


@pytest.fixture(autouse=True)
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.environ.get("TILEGRAD_TEST_INTERPRETER") == "1":
        monkeypatch.setattr(programs, "compile_program", InterpretedPlan)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plans by the interpreter: for tests of what is computed, not of how."""
    tables = (realize.PLANS, traced.PLANS)
    before = [table._plans for table in tables]
    for table in tables:
        table._plans = {}
    monkeypatch.setattr(programs, "compile_program", InterpretedPlan)
    yield
    for table, plans in zip(tables, before, strict=True):
        table._plans = plans


@pytest.fixture
def fresh_plans() -> None:
    """No plan is known from earlier tests."""
    realize.PLANS.clear()
    traced.PLANS.clear()
