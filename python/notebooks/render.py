"""Executes the notebooks, and writes each as a page of the documentation, with what it printed and drew.

    python render.py [--into FOLDER] [NOTEBOOK…]

The notebooks in the repository have no outputs; the pages in docs/src/notebooks have. Figures are drawn for light and
dark pages, as SVG with the same bytes each time. Needs nbclient, nbformat, ipykernel and matplotlib.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

# How wide the tables of the program are. Python's readline, which pytest imports, sets it to that of a terminal of its own.
os.environ["COLUMNS"] = "100"

HERE = Path(__file__).resolve().parent
PAGES = HERE.parents[1] / "docs" / "src" / "notebooks"

#: Runs before the first cell. Grey text and no background read well on a light page and on a dark one; identifiers in an
#: SVG file depend on `hashsalt`, and its date would be the time of the run.
_FIGURES = """
import matplotlib
from matplotlib_inline.backend_inline import set_matplotlib_formats
set_matplotlib_formats("svg", metadata={"Date": None})
matplotlib.rcParams.update({
    "svg.hashsalt": "evenhand", "svg.fonttype": "path", "savefig.transparent": True, "figure.facecolor": "none",
    "axes.facecolor": "none", "text.color": "#808080", "axes.labelcolor": "#808080", "axes.edgecolor": "#808080",
    "xtick.color": "#808080", "ytick.color": "#808080", "legend.labelcolor": "#808080",
})
"""


def execute(path: Path) -> Any:
    """Returns the notebook with its outputs. A cell that raises ends it with an error that shows the cell."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(_FIGURES))
    # The kernel of this interpreter, whatever kernels the user has installed.
    client = NotebookClient(notebook, timeout=300, startup_timeout=180, kernel_name="", resources={"metadata": {"path": str(path.parent)}})
    client.create_kernel_manager()
    client.km.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    client.execute()
    del notebook.cells[0]
    return notebook


def page(name: str, notebook: Any) -> tuple[str, dict[str, str]]:
    """Returns the text of the page, and its figures by file name."""
    parts: list[str] = []
    figures: dict[str, str] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        # What is printed comes in as many pieces as the kernel happens to send.
        printed = "".join(output.text for output in cell.outputs if output.output_type == "stream")
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/svg+xml" in data:
                file = f"{name}-{len(figures) + 1}.svg"
                figures[file] = data["image/svg+xml"].strip() + "\n"
                parts.append(f"![{cell.metadata.get('alt', '')}]({file})")
            elif text := data.get("text/plain"):
                parts.append(f"```text\n{text.rstrip()}\n```")
    link = f"[`python/notebooks/{name}.ipynb`](../../../python/notebooks/{name}.ipynb)"
    title, *rest = parts
    head, _, body = title.partition("\n")
    return "\n\n".join([f"{head}\n\nThis page is the notebook {link}.\n{body}".rstrip(), *rest]) + "\n", figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", type=Path, default=PAGES, help="the folder of the pages")
    parser.add_argument("notebooks", nargs="*", type=Path, default=sorted(HERE.glob("*.ipynb")))
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    for path in arguments.notebooks:
        text, figures = page(path.stem, execute(path))
        for file, image in figures.items():
            Path(arguments.into, file).write_text(image, encoding="utf-8")
        Path(arguments.into, f"{path.stem}.md").write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(re.findall('^```python', text, re.M))} cells, {len(figures)} figures")


if __name__ == "__main__":
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    main()
