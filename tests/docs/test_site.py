"""The site in a real browser: no complaint, no network, nothing to scroll sideways, search and links that work."""

import functools
import http.server
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import sidelong as sl
from browser import visit
from sidelong import errors
from sidelong.service import client

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
LOOKED_AT = (
    "index",
    "feedback-graph",
    "which-learner",
    "benchmarks",
    "api/learners",
    "service",
    "http",
    "http-messages",
    "notebooks/first-steps",
)
CLIPPED = "[...document.querySelectorAll('.content pre')].filter((e) => e.scrollWidth > e.clientWidth + 1).length"
CUT_OFF = """[...document.querySelectorAll('figure.picture text')].filter((e) => {
  const words = e.getBoundingClientRect(), frame = e.ownerSVGElement.getBoundingClientRect();
  return words.left < frame.left - 1 || words.right > frame.right + 1;
}).map((e) => e.textContent)"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "2", DOCS, folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server(site):
    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.anchors, self.sources = [], {""}, []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors.add(found.get("id"))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in {"img", "script"} and "src" in found:
            self.sources.append(found["src"])
        if tag == "link" and found.get("rel") == "stylesheet":
            self.sources.append(found["href"])


def test_every_link_inside_the_site_leads_to_a_page_and_a_place_in_it(site):
    pages = {}
    for path in site.rglob("*.html"):
        pages[path] = Links()
        pages[path].feed(path.read_text("utf-8"))
    assert len(pages) > 25
    for path, page in pages.items():
        for link in page.links:
            where = urlsplit(link)
            if where.scheme:
                continue
            target = (path.parent / unquote(where.path)).resolve() if where.path else path
            assert target.exists(), (path.name, link)
            if target.suffix == ".html":
                assert unquote(where.fragment) in pages[target].anchors, (path.name, link)
        for source in page.sources:
            assert not urlsplit(source).scheme, (path.name, source)
            assert (path.parent / urlsplit(source).path).exists(), (path.name, source)


def test_every_page_is_in_the_navigation(site):
    page = Links()
    page.feed((site / "index.html").read_text("utf-8"))
    sys.path.insert(0, str(DOCS))
    import run_pages  # noqa: PLC0415

    for source in run_pages.pages()[1:]:
        assert f"{source.relative_to(DOCS).with_suffix('')}.html" in page.links


def test_a_block_that_is_a_file_shows_its_name(site):
    sys.path.insert(0, str(DOCS))
    import run_pages  # noqa: PLC0415

    named = [(page, block.file) for page in run_pages.pages() for block in run_pages.blocks(page) if "." in block.file]
    assert len(named) > 8
    for page, name in named:
        shown = (site / page.relative_to(DOCS).with_suffix(".html")).read_text("utf-8")
        assert f'<span class="caption-text">{name}</span>' in shown, (page.name, name)


def test_every_public_function_and_class_is_in_the_reference(site):
    listed = set()
    for path in (site / "api").glob("*.html"):
        page = Links()
        page.feed(path.read_text("utf-8"))
        listed |= {str(anchor).rpartition(".")[2] for anchor in page.anchors}
    for module in (sl, sl.graphs, sl.losses, sl.outcomes, sl.theory, sl.evaluation, errors, client):
        offered = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
        public = {name for name in offered if callable(getattr(module, name))}
        assert public
        assert public <= listed, (module.__name__, public - listed)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_pages_fit_complain_of_nothing_and_ask_for_nothing(browser, server, width, dark):
    for name in LOOKED_AT:
        with visit(browser, f"{server}/{name}.html", width=width, dark=dark) as seen:
            assert seen.complaints == [], name
            assert seen.asked == [], name
            assert seen.overflow <= 0, name
            assert seen.page.evaluate(CLIPPED) == 0, name
            assert seen.page.evaluate(CUT_OFF) == [], name
            for drawn, height in seen.sizes("figure.picture svg"):
                assert 300 <= drawn <= width, name
                assert height > 100, name


def test_a_picture_follows_the_switch_of_the_page_and_not_only_the_system(browser, server):
    colour = "getComputedStyle(document.querySelector('figure.picture text')).fill"
    paper = "getComputedStyle(document.body).backgroundColor"
    with visit(browser, f"{server}/index.html", dark=False) as seen:
        light = seen.page.evaluate(colour), seen.page.evaluate(paper)
        seen.page.evaluate("document.body.dataset.theme = 'dark'")
        dark = seen.page.evaluate(colour), seen.page.evaluate(paper)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    with visit(browser, f"{server}/index.html", dark=True) as seen:
        assert seen.page.evaluate(colour) == dark[0]
        seen.page.evaluate("document.body.dataset.theme = 'light'")
        assert seen.page.evaluate(colour) == light[0]


@pytest.mark.parametrize("way", ["served", "as files"])
def test_search_finds_without_a_network(browser, site, server, way):
    home = server if way == "served" else site.as_uri()
    with visit(browser, f"{home}/search.html?q=posted+prices") as seen:
        seen.page.wait_for_selector("#search-results ul.search li a", timeout=120_000)
        titles = seen.page.locator("#search-results ul.search li > a").all_inner_texts()
        assert any("feedback graph" in title for title in titles), titles
        assert seen.asked == []
        assert seen.complaints == [] or way == "as files"  # a browser may refuse to fetch excerpts from files
