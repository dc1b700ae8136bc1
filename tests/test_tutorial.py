"""The notebook runs from top to bottom, and draws its figures."""

import nbformat
from nbclient import NotebookClient

from tests.documents import ROOT


def test_the_tutorial_runs_from_a_case_to_a_deployed_head():
    notebook = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs belong to the site, not to the repository"
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    figures = [
        output for cell in notebook.cells for output in cell.get("outputs", ()) if "image/png" in output.get("data", {})
    ]
    assert len(figures) >= 5
