"""The command line with modules of PyTorch: run, kill, resume, evaluate, export; and without PyTorch."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors
import torch
from commands import call
from safetensors.torch import load_file

import freewalk as fw
from freewalk.cli import terminal
from freewalk.torch import TorchObjective, models

SPEC = """
name = "run"
[graph]
kind = "ring"
n = 8
[problem]
kind = "torch"
model = { kind = "softmax" }
data = { kind = "digits" }
partition = { kind = "Dirichlet", alpha = 0.5 }
batch = 4
[run]
steps = 600
walks = 4
every = 100
checkpoint = 0.05
[[walk]]
label = "SGD"
design = { kind = "Metropolis", power = 0 }
rule = { kind = "SGD", step = 0.1 }
[[walk]]
label = "Adam"
design = { kind = "MHLJ", jump = 0.2, stop = 0.5, hops = 3 }
rule = { kind = "Optimizer", factory = "Adam", options = { lr = 1e-2 } }
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "spec.toml").write_text(SPEC)
    before = Path.cwd()
    os.chdir(folder)
    try:
        result = call("run", "spec.toml", "--out", "whole", "--quiet")
        assert result.exit_code == 0, result.output
        yield folder
    finally:
        os.chdir(before)


@pytest.mark.long
def test_killed_and_resumed(runs):
    process = subprocess.Popen(
        [sys.executable, "-m", "freewalk.cli", "run", "spec.toml", "--out", "killed", "--quiet"], stderr=subprocess.PIPE
    )
    limit = time.monotonic() + 60
    while process.poll() is None and not list(Path("killed").glob("parts/[0-9]*.npz")) and time.monotonic() < limit:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert b"rror" not in process.communicate()[1]
    assert process.returncode == -signal.SIGKILL
    assert fw.load(next(iter(sorted(Path("killed").glob("parts/[0-9]*.npz"), reverse=True)))).partial
    result = call("resume", "killed", "--quiet")
    assert result.exit_code == 0, result.output
    whole, found = (fw.load(f"{name}/record.npz") for name in ("whole", "killed"))
    assert not found.partial
    assert found.data.identical(whole.data)
    assert found.provenance["data"] == whole.provenance["data"]
    assert found.provenance["data"]["partition_digest"]


def test_evaluate(runs):
    result = call("evaluate", "whole", "--figure", "nodes.png", "--out", "numbers.json")
    assert result.exit_code == 0, result.output
    assert all(word in result.stdout for word in ("accuracy", "test_loss", "worst node", "Adam"))
    assert Path("nodes.png").stat().st_size > 10_000
    numbers = json.loads(Path("numbers.json").read_text())
    record = fw.load("whole/record.npz")
    np.testing.assert_allclose(numbers["data_vars"]["accuracy"]["data"], record.data.accuracy[..., -1])
    assert np.shape(numbers["data_vars"]["node_loss"]["data"]) == (2, 4, 8)


def test_export(runs):
    assert "there are 2 designs" in call("export", "whole", "--out", "model").output
    accuracy = float(fw.load("whole/record.npz").data.accuracy.sel(design="Adam")[3, -1])
    _, test = fw.data.digits().split(0.2, seed=0)
    for name in ("model.safetensors", "model.pt"):
        result = call("export", "whole", "--design", "Adam", "--walk", "3", "--out", name)
        assert (result.exit_code, result.stdout.strip()) == (0, name)
        state = load_file(name) if name.endswith("safetensors") else torch.load(name, weights_only=True)
        module = models.softmax(64, 10, seed=99)
        module.load_state_dict(state)
        fresh = TorchObjective(module, "cross_entropy", [test])
        assert fresh.measure(fresh.first_model())["accuracy"] == pytest.approx(accuracy)
    with safetensors.safe_open("model.safetensors", "pt") as file:
        metadata = file.metadata()
    assert metadata["freewalk"] == fw.__version__
    assert (metadata["spec"], metadata["label"], metadata["walk"], metadata["step"]) == ("run", "Adam", "3", "600")
    assert float(metadata["accuracy"]) == pytest.approx(accuracy)
    assert "from 0 to 3" in call("export", "whole", "--design", "Adam", "--walk", "4", "--out", "x.pt").output
    assert "did you mean 'Adam'" in call("export", "whole", "--design", "Adem", "--out", "x.pt").output
    assert ".safetensors or .pt" in call("export", "whole", "--design", "Adam", "--out", "x.npz").output


SINGLY = """
import torch

class Net(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layer = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.layer(x if float(x.sum()) < 1e30 else 2 * x)  # no batch of models can be computed at once
"""


@pytest.mark.filterwarnings("always::freewalk.errors.LoopWarning")
def test_a_warning_is_one_line_and_code_needs_consent(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(terminal, "say", lambda words, style="": said.append(words))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "singly.py").write_text(SINGLY)
    spec = SPEC.replace("softmax", "singly:Net").replace("digits", "wine").replace("steps = 600", "steps = 50")
    (tmp_path / "spec.toml").write_text(spec)
    assert call("run", "spec.toml", "--out", "run").exit_code == 0
    warned = [words for words in said if words.startswith("warning: torch: Net runs one row at a time")]
    assert len(warned) == 1
    assert "vectorize = false" in warned[0]
    said.clear()
    assert call("evaluate", "run").exit_code == 2
    assert "freewalk evaluate run --allow-code" in said[-1]
    assert call("evaluate", "run", "--allow-code").exit_code == 0


WITHOUT = """
import sys
sys.modules["torch"] = None
from freewalk.cli import app
app(sys.argv[1:])
"""


def test_without_pytorch(tmp_path):
    (tmp_path / "spec.toml").write_text(SPEC)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "run", "spec.toml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    missing = "error: 'torch' is not installed; install it with: pip install \".[torch]\" (in the checkout of freewalk)"
    assert done.stderr.strip() == missing
    assert not (tmp_path / "runs").exists()


def test_lists_and_other_specs_do_not_import_pytorch():
    code = (
        "import sys; from typer.testing import CliRunner; from freewalk import cli, specs\n"
        "for words in (['list'], ['list', 'torch'], ['list', 'Optimizer'], ['example', 'digits'], ['--help']):\n"
        "    assert CliRunner().invoke(cli.app, words).exit_code == 0, words\n"
        "specs.load(specs.shipped('digits.toml'))\n"
        "specs.load(specs.shipped('demo.toml')).plan()\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.long
def test_the_spec_of_digits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("example", "--kind", "digits", "mine.toml").exit_code == 0
    text = Path("mine.toml").read_text().replace("steps = 1500", "steps = 300").replace("every = 50", "every = 300")
    Path("mine.toml").write_text(text)
    assert call("run", "mine.toml", "--quiet").exit_code == 0
    found = fw.load("runs/mine/record.npz").data.accuracy[..., -1].mean("walk")
    assert (found > 0.6).all()
