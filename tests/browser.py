"""A page in a real browser: what it asks for, what it complains about, and how it looks."""

from contextlib import contextmanager
from urllib.parse import urlsplit

PATIENCE = 120_000  # milliseconds: of a machine that does much else
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium(program):
    """Run Chromium, driven by Playwright."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # most tests need no browser

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=FLAGS, timeout=PATIENCE)
        yield running
        running.close()


class Visit:
    """A page that is open. `asked` has the requests that left it, `complaints` what it wrote to the console."""

    def __init__(self, page, url, until):
        self.page = page
        self.asked, self.complaints = [], []
        page.on("request", lambda request: self._note(request.url, urlsplit(url)))
        page.on(
            "console", lambda message: message.type in {"error", "warning"} and self.complaints.append(message.text)
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(url, wait_until=until)

    def _note(self, url, home):
        where = urlsplit(url)
        if where.scheme not in {"data", "blob", "about"} and where[:2] != home[:2]:
            self.asked.append(url)

    @property
    def overflow(self):
        """By how many pixels the page is wider than the window: what a person must scroll sideways."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def sizes(self, selector):
        """Return width and height of each element that a selector finds; 0 if it is not shown."""
        boxes = [element.bounding_box() for element in self.page.locator(selector).all()]
        return [(box["width"], box["height"]) if box else (0, 0) for box in boxes]


@contextmanager
def visit(browser, url, *, width=1280, height=900, dark=False, until="networkidle"):
    """Open a page in a window of its own; one that never stops asking is open once it has loaded: until="load"."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(PATIENCE)
    try:
        yield Visit(context.new_page(), url, until)
    finally:
        context.close()
