"""The specs of docs/explanation/real-data.md can be run, and give every method the same budget."""

import json
from pathlib import Path

import numpy as np
import pytest

from freewalk.specs import load

DOCS = Path(__file__).parents[2] / "docs"
SPECS = sorted((DOCS / "studies").glob("*.toml"))
MODELS = ("softmax", "convolutional")
SUFFIXES = ("", "-4-walks", "-gossip", "-fedavg")


@pytest.mark.quick("digits-convolutional", "digits-softmax-4-walks", "digits-softmax-fedavg", "digits-softmax-gossip")
@pytest.mark.parametrize("file", SPECS, ids=lambda file: file.stem)
def test_each_spec_runs(file):
    spec = load(file)
    steps = min(20, spec.tables.run.steps // 4)
    spec = spec.replaced(steps=steps, every=steps, walks=2)
    record = spec.run()
    assert record.data.sizes["design"] == len(spec.tables.walk)
    loss = record.data.loss
    assert np.isfinite(loss).all()
    assert (loss.isel(step=-1) != loss.isel(step=0)).all()


@pytest.mark.parametrize("model", MODELS)
def test_methods_have_the_same_problem_and_the_same_budget(model):
    plans = [load(DOCS / "studies" / f"digits-{model}{suffix}.toml").plan() for suffix in SUFFIXES]
    assert len({plan.problem.fingerprint for plan in plans}) == 1
    budgets = set()
    for plan in plans:
        for method in plan.contestants:
            tokens = plan.graph.n if method.tokens == "nodes" else method.tokens
            budgets.add(plan.options["steps"] * tokens * method.rule.local_steps)
    assert len(budgets) == 1


@pytest.mark.parametrize("model", MODELS)
def test_steps_are_those_of_the_pilot_runs(model):
    kept = json.loads((DOCS / "images" / "digits" / f"steps-{model}-dirichlet-watts-strogatz.json").read_text("utf-8"))
    chosen = {row["method"]: row["step"] for row in kept["rows"]}
    for suffix in SUFFIXES:
        plan = load(DOCS / "studies" / f"digits-{model}{suffix}.toml").plan()
        for method in plan.contestants:
            assert method.rule.step == chosen[method.label]
