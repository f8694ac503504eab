"""Take a picture of each page of the built site, wide and narrow, light and dark: `python docs/look.py [PAGE ...]`.

Prints what no page may have: something to scroll sideways, an image that is missing, text that leaves its picture or
its box. The pictures are in docs/_build/look, for a person to look at. README.md is shown roughly as on a code host.
"""

from __future__ import annotations

import itertools
import shutil
import sys
from pathlib import Path

from markdown_it import MarkdownIt

DOCS = Path(__file__).parent
SITE, PICTURES = DOCS / "_build" / "html", DOCS / "_build" / "look"
sys.path.insert(0, str(DOCS.parent / "tests"))

from browser import chromium, visit

WRONG = """() => {
  const wrong = [];
  for (const image of document.querySelectorAll("img"))
    if (image.complete && image.naturalWidth === 0) wrong.push("missing: " + image.src);
  for (const pre of document.querySelectorAll(".content pre"))
    if (pre.scrollWidth > pre.clientWidth + 1) wrong.push("clipped: " + pre.textContent.slice(0, 60));
  const inside = (a, b) =>
    a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  for (const drawing of document.querySelectorAll("figure svg, .content svg:not(.icon)")) {
    const frame = drawing.getBoundingClientRect();
    if (frame.width < 100) continue;
    const boxes = [...drawing.querySelectorAll("rect")].map((e) => e.getBoundingClientRect());
    for (const text of drawing.querySelectorAll("text")) {
      const words = text.getBoundingClientRect();
      const x = (words.left + words.right) / 2, y = (words.top + words.bottom) / 2, middle = new DOMRect(x, y, 0, 0);
      const around = [frame, ...boxes.filter((box) => box.height > words.height && inside(middle, box))];
      if (words.width && !around.every((box) => inside(words, box))) wrong.push("outside: " + text.textContent);
    }
  }
  return wrong;
}"""


def main() -> None:
    """Look at the pages that are named, or at all."""
    program = shutil.which("chromium")
    if not program or not SITE.exists():
        sys.exit("This needs Chromium (make packages) and the site (make docs).")
    readme = DOCS / "_build" / "README.html"
    markdown = MarkdownIt("gfm-like", {"linkify": False, "html": True})
    text = markdown.render((DOCS.parent / "README.md").read_text("utf-8"))
    style = "body{max-width:52em;margin:auto;padding:1em;font:16px sans-serif}img{max-width:100%}"
    style += "pre,table{overflow:auto;display:block}"
    base = f"<meta charset=utf-8><meta name=color-scheme content='light dark'><base href='{DOCS.parent.as_uri()}/'>"
    readme.write_text(f"{base}<style>{style}</style>{text}", "utf-8")
    site = [path for path in sorted(SITE.rglob("*.html")) if "_modules" not in path.parts]
    known = {"README": readme} | {str(path.relative_to(SITE).with_suffix("")): path for path in site}
    failed: list[str] = []
    with chromium(program) as browser:
        for name in sys.argv[1:] or known:
            with visit(browser, known[name].as_uri(), until="load") as seen:
                for width, scheme in itertools.product((1280, 400), ("light", "dark")):
                    seen.page.set_viewport_size({"width": width, "height": 900})
                    seen.page.emulate_media(color_scheme=scheme)
                    file = PICTURES / f"{name.replace('/', '.')}-{width}-{scheme}.png"
                    seen.page.screenshot(path=file, full_page=True)
                    wrong = seen.page.evaluate(WRONG) + [f"{seen.overflow} pixels too wide"] * (seen.overflow > 0)
                    failed += [f"{file.stem}: {each}" for each in wrong + seen.complaints]
    sys.exit("\n".join(failed) or None)


if __name__ == "__main__":
    main()
