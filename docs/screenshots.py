"""Draw the figures of docs/service.md: the views of a running service in a browser without a display.

    make demo &                                            # a small zoo, served at port 8420
    python docs/screenshots.py http://127.0.0.1:8420       # writes docs/figures/service-*.png

It needs playwright and a Chromium on the path, and asks nothing but the service.
"""

import argparse
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from registry.client import Client

FIGURES = Path(__file__).parent / "figures"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_MS = 60_000  # the first simulation compiles
SETTLE_MS = 1_500  # curves are drawn after the page is there


def views(client: Client) -> dict[str, str]:
    """Name of each figure and the path of its view: of the first deployment that the service lists."""
    deployed = client.get("/api/v1/deployments")["items"][0]
    return {
        "overview": "/",
        "grid": "/grid",
        "contingency": f"/contingencies/{deployed['contingency']}",
        "head": f"/heads/{deployed['head']}",
    }


def main() -> None:
    """Write one figure for each view."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="address of the service")
    parser.add_argument("--output", type=Path, default=FIGURES, help="folder of the figures")
    given = parser.parse_args()
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        sys.exit("no browser: install the package 'chromium'.")
    with Client(given.url) as client, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--no-proxy-server"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(PATIENCE_MS)
        for name, path in views(client).items():
            page.goto(f"{given.url}{path}", wait_until="networkidle")
            page.wait_for_timeout(SETTLE_MS)
            page.screenshot(path=given.output / f"service-{name}.png")
            print(given.output / f"service-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
