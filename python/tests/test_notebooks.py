"""The notebooks run, and print what their pages in the documentation show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="executing notebooks needs nbclient")
pytest.importorskip("ipykernel", reason="executing notebooks needs ipykernel")

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
PAGES = Path(__file__).parents[2] / "docs" / "src" / "notebooks"


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_as_its_page_shows(notebook: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(NOTEBOOKS / "render.py"), "--into", str(tmp_path), str(notebook)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    name = f"{notebook.stem}.md"
    assert Path(tmp_path, name).read_text() == Path(PAGES, name).read_text(), (
        "the page differs from what the notebook prints; python python/notebooks/render.py writes it"
    )
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    assert drawn == {path.name for path in PAGES.glob(f"{notebook.stem}-[0-9]*.svg")}


def test_notebooks_have_no_outputs() -> None:
    import nbformat

    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        assert all(not cell.outputs for cell in cells if cell.cell_type == "code"), path.name
