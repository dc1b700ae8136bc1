"""The site of the documents builds without a warning, has every page, and fetches nothing from elsewhere."""

import os
import re
import subprocess
import sys

import pytest

from tests.documents import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_every_document_is_a_page_that_the_menu_leads_to(site):
    front = (site / "index.html").read_text()
    for document in (ROOT / "docs").glob("*.md"):
        page = document.with_suffix(".html").name
        assert (site / page).is_file()
        assert f'href="{page}"' in front, f"no way leads to {page}"


def test_the_api_page_has_every_function_of_the_zoo(site):
    import zoo

    page = (site / "api.html").read_text()
    functions = [name for name in zoo.__all__ if name.islower() and not name.startswith("load_")]
    assert all(f'{name}"' in page for name in functions)
    assert (site / "search" / "search_index.json").stat().st_size > 100_000


def test_nothing_is_fetched_from_elsewhere(site):
    fetched = re.compile(r"<(?:script|img|iframe)[^>]*\bsrc=\"?https?:|<link[^>]*rel=\"?stylesheet[^>]*href=\"?https?:")
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not fetched.search(text), page.name
        assert 'class="mermaid"' not in text, f"{page.name}: diagrams of this kind load a script from elsewhere"
