"""The wheel holds all that a user needs and nothing that only a developer does."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    # A copy of what git would ship: building in place would leave traces in the working tree.
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for file in [*(ROOT / "src" / "freewalk").rglob("*"), *(ROOT / "reproduction").rglob("*")]:
        if file.is_file() and "__pycache__" not in file.parts:
            target = source / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source], check=True, cwd=folder
    )
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_ships_types_specs_and_license_but_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "freewalk/py.typed" in names
    assert "freewalk/specs/examples/demo.toml" in names
    assert {"freewalk/report/page/page.html", "freewalk/report/page/page.css", "freewalk/report/page/page.js"} <= {
        *names
    }
    assert {"freewalk/paper/published_curves.csv", "freewalk/paper/specs/published/figure-3.json"} <= {*names}
    assert "freewalk/paper/studies/figure-3.toml" in names
    assert any(name.endswith("LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/", "reproduction/"))]
    sources = {str(file.relative_to(ROOT / "src")) for file in (ROOT / "src" / "freewalk").rglob("*.py")}
    assert sources <= set(names)


def test_installed_wheel_runs_without_the_source_tree(wheel, tmp_path):
    place = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", "--target", place, wheel], check=True)
    script = (
        "import freewalk as fw; print(fw.__file__);"
        "kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5));"
        "print(int(fw.walk(kernel, steps=10, every=10).data.messages[0, -1]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(place)}
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=environment, check=True
    )
    file, messages = result.stdout.split()
    assert Path(file).is_relative_to(place)
    assert messages == "10"
