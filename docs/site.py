"""A hook of mkdocs: the pages of the site that lie outside `docs/`, with their links as the site has them."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}  # file at the root -> page


def on_config(config: Any) -> Any:
    """Lead to every page: those that the menu does not name come last in it."""
    named = str(config.nav)
    further = [path.name for path in sorted((ROOT / "docs").glob("*.md")) if f"'{path.name}'" not in named]
    if further:
        config.nav = [*config.nav, {"More": further}]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the README and the guide for contributors, as pages beside the others."""
    from mkdocs.structure.files import File

    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=_linked((ROOT / name).read_text(encoding="utf-8"))))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to the pages above lead within the site, and so do those to the one-page report."""
    for name, target in PAGES.items():
        markdown = markdown.replace(f"](../{name})", f"]({target})")
    if page.file.src_uri == "report/README.md":
        return markdown.replace("](index.html)", "](README.md)")
    return markdown.replace("](report/index.html)", "](report/README.md)")


def _linked(text: str) -> str:
    """A page of the root as one of `docs/`: links without the folder, and to the other pages above."""
    text = re.sub(r"\]\(docs/", "](", text)
    for name, page in PAGES.items():
        text = text.replace(f"]({name})", f"]({page})")
    return text
