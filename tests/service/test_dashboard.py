"""The dashboard in a real browser, against a real server: what it shows is what the API says, as it happens."""

import contextlib
import decimal
import io
import itertools
import re
import time

import httpx
import pytest

import sidelong as sl
from browser import visit
from sidelong import evaluation
from sidelong.service.store.kinds import open_database
from sidelong.service.store.tokens import Tokens


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('server')}/sidelong.db"


@pytest.fixture(scope="module")
def served(nursery, database):
    running = nursery.start(database)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def service(served):
    with sl.connect(served.address) as connected:
        yield connected


@pytest.fixture(scope="module")
def played(service):
    """An experiment with labels, one of which tries to be HTML, and with feedback for all but one decision."""
    labels = [f"<b>{name}</b>" for name in ("tiny", "small", "large", "huge")]
    agent = service.create("models", "exp3.g++", sl.graphs.nested(4), seed=3, description="<img src=x>", labels=labels)
    for t in range(30):
        decision = agent.ask()
        agent.tell(decision, {int(arm): (t % 3 + int(arm)) / 6 for arm in decision.reveals})
    agent.ask()
    return agent


def opened(browser, served, name, **how):
    return visit(browser, f"{served.address}/#/{name}", until="load", **how)


def rounded(value, digits):
    """Return a number as the page writes it: browsers round a tie up, where Python takes the even digit."""
    exact = decimal.Decimal(float(value))
    return str(exact.quantize(decimal.Decimal(1).scaleb(-digits), decimal.ROUND_HALF_UP))


def wait(page, selector, text=None):
    found = page.locator(selector)
    found = found.filter(has_text=text) if text else found
    found.first.wait_for()
    return found.first


def wait_for_count(page, name, value):
    wait(page, f'[data-figure="{name}"] dd', re.compile(rf"^{value:,}(\D|$)"))


def fine(seen):
    return seen.complaints == [] and seen.asked == []


def test_an_experiment_is_made_with_the_keyboard_and_its_decisions_arrive_live(browser, served, service):
    with visit(browser, served.address, until="load") as seen:
        page = seen.page
        wait(page, "#welcome:not([hidden])")
        page.locator("#first").focus()
        page.keyboard.press("Enter")
        wait(page, "#create[open]")
        page.keyboard.type("what?")  # the name has the focus
        page.keyboard.press("Enter")
        assert "A name begins with" in page.locator("#create-error").inner_text()
        page.keyboard.press("ControlOrMeta+A")
        page.keyboard.type("orders")
        page.keyboard.press("Tab")
        page.keyboard.type("How many to order")
        page.get_by_label("Family").select_option("nested")
        page.get_by_label("n", exact=True).fill("6")
        page.get_by_label("Seed").fill("7")
        page.keyboard.press("Enter")
        wait(page, "#experiment:not([hidden])")
        wait(page, "#link[data-state=live]")
        assert page.url.endswith("#/orders")
        assert page.locator("h1#name").inner_text() == "orders"
        assert "A theorem covers this, and says little so far." in page.locator("#guarantee").inner_text()
        assert page.locator('#guarantee[data-promises="true"]').count() == 0  # no green tick for what begins later
        assert page.locator('nav a[aria-current="page"]').inner_text().startswith("orders")
        made = service["orders"].state()
        assert (made["seed"], made["learner"], made["options"], made["graph"]["n_arms"]) == (7, "glance", {}, 6)

        decision = service["orders"].ask()
        arrived = wait(page, '#latest [data-kind="decided"]')
        assert f"round 1, arm {decision.arm}" in arrived.inner_text()
        wait_for_count(page, "outstanding", 1)
        service["orders"].tell(decision, [0.5] * decision.reveals.size)
        wait(page, '#latest [data-kind="told"]')
        wait_for_count(page, "told", 1)
        wait_for_count(page, "outstanding", 0)
        wait(page, 'nav a[aria-current="page"] .what', "6 arms · 1 decision")
        assert fine(seen)


def test_every_number_is_what_the_api_says(browser, served, played):
    with opened(browser, served, "models") as seen:
        page = seen.page
        wait_for_count(page, "decided", 31)
        state = httpx.get(f"{served.address}/v1/experiments/models?limit=100&sort=arm", timeout=60).json()
        for name in ("decided", "told", "outstanding", "expired", "cancelled"):
            assert page.locator(f'[data-figure="{name}"] dd').inner_text() == str(state["counts"][name])
        regret = state["regret"]
        best = max(state["arms"]["items"], key=lambda arm: arm["probability"])
        for name, arm in (("cheapest so far", state["best"]), ("plays next", best)):
            called = arm["label"] or f"arm {arm['arm']}"
            assert page.locator(f'[data-figure="{name}"] dd').inner_text().startswith(called)
        shown = page.locator('[data-figure="regret"] dd').inner_text()
        assert shown.startswith(rounded(regret["estimate"], 1).replace("-", "\N{MINUS SIGN}"))
        assert "against the best arm" in shown  # which one that is, "cheapest so far" says
        p_value = rounded(state["sample_ratio"]["p_value"], 3)
        assert f"p = {p_value}" in page.locator('[data-figure="sample ratio"]').inner_text()
        page.locator('[data-sort="arm"]').click()
        rows = page.locator("#arms tbody tr").all()
        assert len(rows) == 4
        for row, arm in zip(rows, state["arms"]["items"], strict=True):
            cells = row.locator("td").all_inner_texts()
            assert cells[:4] == [str(arm["arm"]), arm["label"], str(arm["plays"]), str(arm["observations"])]
            for text, p in zip(cells[4:6], (arm["probability"], arm["observe_probability"]), strict=True):
                assert float(text.rstrip(" %").lstrip("< ")) == pytest.approx(100 * p, abs=0.06)
            assert cells[6] == rounded(arm["mean"], 3)
            assert cells[7] == f"{rounded(arm['low'], 3)} to {rounded(arm['high'], 3)}"
        assert page.locator("#description").inner_text() == "<img src=x>"  # text, whatever it looks like
        assert page.locator("#description img, td.label b").count() == 0
        played.tell(played.ask(), dict.fromkeys(range(4), 0.5), graph=sl.graphs.complete(4))
        wait(page, '#guarantee[data-holds="true"]', "known only after the draw")
        assert fine(seen)


def test_the_graph_tells_what_playing_an_arm_reveals(browser, served, played):
    state = played.state()
    with opened(browser, served, "models") as seen:
        page = seen.page
        wait(page, ".drawing .arm[aria-label]")
        assert page.locator(".drawing .arm").count() == 4
        boxes = [arm.bounding_box() for arm in page.locator(".drawing .arm .face").all()]
        assert len({box["y"] for box in boxes}) == 1  # orders stand in a row
        assert [box["x"] for box in boxes] == sorted(box["x"] for box in boxes)
        page.locator('.drawing .arm[tabindex="0"]').focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        caption = page.locator("#graph-caption").inner_text()
        assert caption.startswith("Arm 2 (<b>large</b>): played with")
        assert caption.endswith("Playing it reveals arms 0 to 2.")
        (below,) = page.locator(".drawing .edge.out").all()  # what it reveals: all smaller ones, and itself
        assert below.bounding_box()["x"] == pytest.approx(boxes[0]["x"], abs=4)
        assert below.bounding_box()["width"] == pytest.approx(boxes[2]["x"] + boxes[2]["width"] - boxes[0]["x"], abs=8)
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == caption
        assert state["graph"]["n_arms"] == 4
        assert fine(seen)


def test_a_graph_without_an_order_is_drawn_with_its_edges(browser, served, service):
    service.create(
        "ring", "glance", sl.FeedbackGraph.from_edges([(i, (i + k) % 5) for i in range(5) for k in (0, 2)], 5), seed=1
    )
    with opened(browser, served, "ring") as seen:
        page = seen.page
        wait(page, ".drawing .arm[aria-label]")
        assert page.locator(".drawing .edge").count() == 5
        page.locator('.drawing .arm[tabindex="0"]').focus()
        assert page.locator(".drawing .edge.out").count() == 1
        assert fine(seen)


@pytest.mark.parametrize("width", [1280, 380])
def test_the_graph_calls_arms_by_their_labels(browser, served, service, width):
    labels = ["gpt-4o-mini", "claude-haiku", "llama-3.1-8b", "a-model-with-a-name-that-is-far-too-long"]
    labels += ["nova", "mistral-small", "command-r-plus"]
    for name, graph in (("called-c", sl.graphs.complete(7)), ("called-s", sl.graphs.star(7))):
        service.create(f"{name}-{width}", "exp3.g++", graph, seed=3, labels=labels)
        with opened(browser, served, f"{name}-{width}", width=width) as seen:
            wait(seen.page, ".drawing .arm[aria-label]")
            shown = seen.page.locator(".drawing text").all_text_contents()
            assert shown == [*labels[:3], "a-model-with-a-na…", *labels[4:]]
            picture = seen.page.locator(".drawing").bounding_box()
            for text in seen.page.locator(".drawing text").all():
                box = text.bounding_box()
                assert picture["x"] - 1 <= box["x"] <= box["x"] + box["width"] <= picture["x"] + picture["width"] + 1
            assert seen.overflow <= 0
            assert fine(seen)


@pytest.mark.parametrize("width", [1280, 380])
def test_labels_of_arms_in_a_row_do_not_touch(browser, served, service, width):
    service.create(f"row-{width}", "glance", sl.graphs.nested(8), seed=3, labels=[f"{6 * k} loaves" for k in range(8)])
    with opened(browser, served, f"row-{width}", width=width) as seen:
        wait(seen.page, ".drawing .arm[aria-label]")
        boxes = [text.bounding_box() for text in seen.page.locator(".drawing text").all()]
        assert all(a["x"] + a["width"] < b["x"] for a, b in itertools.pairwise(boxes))
        assert fine(seen)


def test_keys_are_shown_by_search_the_worst_first_and_in_one_distribution(browser, served, service):
    shop = service.create("shop", "exp3.g++", sl.graphs.nested(3), seed=1, keyed=True, labels=["none", "one", "two"])
    batch = shop.ask_many(["bread", "milk", "apples"])
    losses = [
        loss for loss, n in zip((0.2, 0.9, 0.4), batch.offsets[1:] - batch.offsets[:-1], strict=True) for _ in range(n)
    ]
    shop.tell_many(batch, losses)
    with opened(browser, served, "shop") as seen:
        page = seen.page
        wait(page, "#keys tr[data-key]")
        rows = page.locator("#keys tr[data-key] td.label").all_inner_texts()
        assert rows == ["milk", "apples", "bread"]
        assert page.locator("#keys-costs rect").count() == 20
        assert not page.locator("#guarantee").is_visible()
        titles = page.locator("#arms th").all_inner_texts()[:-1]  # the last one is drawn
        assert titles == ["arm", "label", "plays", "observed", "cost", "95 % interval"]
        best = {page.locator(f'#keys tr[data-key="{key}"] td').nth(3).inner_text() for key in rows}
        assert best <= {"none", "one", "two"}  # and no numbers in place of labels
        shown = page.locator("#arms tr[data-arm]").first.locator("td").nth(4).inner_text()
        assert shown == f"{shop.state()['arms']['items'][0]['mean']:.3f}"
        wait_for_count(page, "keys", 3)
        page.locator("#keys-search").fill("br")
        wait(page, "#keys-hint", "1 key found")
        assert page.locator("#keys tr[data-key] td.label").all_inner_texts() == ["bread"]
        assert seen.overflow <= 0
        assert fine(seen)


@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
def test_amounts_are_shown_in_the_unit_of_the_scale(browser, served, keyed):
    name, scale = f"euros-{keyed}".lower(), {"best": 0, "worst": 250}
    body = {"name": name, "graph": {"name": "complete", "n": 3}, "scale": scale, "keyed": keyed}
    served.post("/v1/experiments", {**body, "holdout": {"arm": 2, "share": 0.4}, "seed": 1})
    with opened(browser, served, name) as seen:
        wait(seen.page, '[data-figure="cost in all"] dd', "nothing was told yet")
        for _ in range(40):
            _, made = served.post(f"/v1/experiments/{name}/decisions", {"key": "bread"} if keyed else {})
            served.post(f"/v1/decisions/{made['id']}/feedback", {"losses": [50.5, 100, 200]})
        wait_for_count(seen.page, "told", 40)
        amounts = served.get(f"/v1/experiments/{name}")[1]["amounts"]
        assert amounts["total"] > 1000  # which is shown without digits behind the point
        wait(seen.page, '[data-figure="cost in all"] dd', f"{int(rounded(amounts['total'], 0)):,}")
        shown = seen.page.locator('[data-figure="cost in all"] dd').inner_text()
        assert f"{amounts['rounds']} rounds" in shown
        saved = seen.page.locator('#answers [data-figure="saved"] dd').inner_text()
        assert saved.startswith(f"{int(rounded(amounts['saved']['estimate'], 0)):,}")
        assert "per round" in saved
        assert abs(amounts["regret"]["estimate"]) < 1e-9  # the best arm was played, but for errors of rounding
        wait(seen.page, '[data-figure="regret"] dd', re.compile(r"^0\b(?!\.)"))
        if not keyed:
            wait(seen.page, '#answers [data-figure="cheapest so far"] dd', "cost 50.5 per round")
            wait(seen.page, '[data-figure="the holdout"] dd', ": 200 per round, and ")
        assert fine(seen)


def test_what_cannot_be_known_says_why(browser, served, service):
    agent = service.create("sparing", "exp3.g++", sl.graphs.complete(3), seed=1, refresh="epoch")
    for _ in range(20):
        agent.tell(agent.ask(), [0.3, 0.3, 0.3])
    with opened(browser, served, "sparing") as seen:
        wait(seen.page, '[data-figure="sample ratio"] small', "the learner does not tell all probabilities")
        assert seen.page.locator('[data-figure="regret"] dd').inner_text().startswith("0.0")  # a hair below, or above
        assert fine(seen)
    blind = service.create("blind", "ts-n", sl.graphs.complete(3), seed=1)
    with opened(browser, served, "blind") as seen:
        wait(seen.page, '[data-figure="regret"] small', "not known yet")
        blind.tell(blind.ask(), [0, 1, 0])
        wait(seen.page, '[data-figure="regret"] small', "cannot be estimated from this feedback")
        assert fine(seen)


def test_many_arms_are_drawn_as_a_strip(browser, served, service):
    service.create("ladder", "exp3.g++", sl.graphs.nested(150), seed=1)
    with opened(browser, served, "ladder") as seen:
        page = seen.page
        strip = wait(page, ".strip")
        assert page.locator(".strip .played").count() == 150
        strip.focus()
        page.keyboard.press("ArrowLeft")
        assert page.locator("#graph-caption").inner_text().startswith("Arm 149: played with")
        assert page.locator("#arms tbody tr").count() == 20
        page.get_by_role("button", name="Show more").click()
        assert page.locator("#arms tbody tr").count() == 120
        assert fine(seen)


def test_an_expiry_is_a_note_and_no_alarm(browser, served, service):
    agent = service.create("short-lived", "glance", sl.graphs.nested(4), seed=1, expire_after=1.0)
    with opened(browser, served, "short-lived") as seen:
        page = seen.page
        wait(page, '#guarantee[data-holds="true"]')
        wait(page, "#link[data-state=live]")
        agent.ask()
        notice = wait(page, '#guarantee[data-holds="false"]')
        assert "1 of 1 decisions expired without feedback." in notice.inner_text()
        assert notice.get_attribute("role") == "status"  # a screen reader says it
        wait_for_count(page, "expired", 1)
        wait(page, '#latest [data-kind="expired"]')
        assert page.locator("nav .badge").count() == 0
        assert not page.locator("#alarms").is_visible()
        assert fine(seen)


def test_what_is_wrong_is_an_alarm(browser, served, service):
    labels = ["gpt-4o-mini", "claude-haiku"]
    agent = service.create("turning", "exp3-set", sl.graphs.complete(2), seed=1, labels=labels)
    for night in range(12):
        made = agent.ask_many(200)
        agent.tell_many(made, ([0.1, 0.9] if night < 6 else [0.9, 0.1]) * 200)
    agent.tell(agent.ask(), [0.9, 0.1])
    [alarm] = agent.state()["alarms"]
    assert "gpt-4o-mini cost at least" in alarm
    with opened(browser, served, "turning") as seen:
        wait(seen.page, "#alarms:not([hidden])", alarm)
        wait(seen.page, "nav .badge", "alarm")
        wait(seen.page, "#latest li", re.compile("gpt-4o-mini|claude-haiku"))
        assert fine(seen)


def test_the_certificate_and_the_alarm_are_shown(browser, served, service):
    agent = service.create("sure", "exp3-set", sl.graphs.complete(3), seed=1, certificate=True)
    for _ in range(30):
        agent.tell(agent.ask(), [0.1, 0.5, 0.9])
    bound = agent.state()["certificate"]["bound"]
    with opened(browser, served, "sure") as seen:
        wait(seen.page, '[data-figure="lost at most"] dd', re.compile(rf"^{rounded(bound, 1)}\D"))
        wait(
            seen.page, '[data-figure="lost at most"] small', re.compile("beyond any arm, 95.0 % sure.*most beyond arm")
        )
        wait(seen.page, '[data-figure="the world"] dd', "as before")
        assert fine(seen)


@pytest.mark.usefixtures("played")
def test_off_policy_estimates_are_those_of_the_log(browser, served):
    log = evaluation.read_log(io.BytesIO(httpx.get(f"{served.address}/v1/experiments/models/log", timeout=60).content))
    arms = evaluation.evaluate_arms(log)
    mix = evaluation.evaluate_distribution(log, [0.5, 0, 0, 0.5])
    with opened(browser, served, "models") as seen:
        page = seen.page
        wait(page, "#experiment:not([hidden])")
        page.get_by_label("Distribution").fill("0: 0.5, 3: 0.6")
        page.get_by_role("button", name="Estimate").click()
        assert page.locator("#mix-error").inner_text() == "The shares must have the sum 1, not 1.100."
        page.get_by_label("Distribution").fill("0: 0.5, 3: 0.5")
        page.get_by_role("button", name="Estimate").click()
        wait(page, "#instead table")
        cells = [row.locator("td").all_inner_texts() for row in page.locator("#instead tbody tr").all()]
        rows = {row[0].partition(" ·")[0]: row for row in cells}
        for name, found, k in [("distribution", mix, 0), *((f"arm {arm}", arms, arm) for arm in range(4))]:
            assert rows[name][1] == rounded(found.value[k], 4)
            assert rows[name][2] == f"{rounded(found.lower[k], 3)} to {rounded(found.upper[k], 3)}"
        notes = page.locator("#instead p").bounding_box()  # they are not scrolled sideways with the table
        assert notes["x"] + notes["width"] <= 1280
        assert fine(seen)


@pytest.mark.usefixtures("played")
def test_predictions_for_a_context_that_is_typed_in(browser, served, service):
    with opened(browser, served, "models") as seen:
        page = seen.page
        wait(page, "#experiment:not([hidden])")
        assert not page.locator("#context-panel").is_visible()  # this learner sees no context
        page.locator("#new").click()
        wait(page, "#create[open]")
        page.locator("#new-name").fill("trays")
        assert not page.locator("#new-features").is_visible()
        page.locator("#new-learner").select_option("squarecb.g")
        page.get_by_role("button", name="Create").click()
        assert "name at least one" in page.locator("#create-error").inner_text()
        page.locator("#new-features").fill("weekday, size")
        page.get_by_role("button", name="Create").click()
        wait(page, "h1#name", "trays")
        agent = service["trays"]
        for t in range(8):
            decision = agent.ask(context={"weekday": "MT"[t % 2], "size": t / 4, "order": t})
            agent.tell(decision, [(t % 2 + int(arm)) / 12 for arm in decision.reveals])
        wait(page, "#context-panel:not([hidden])")
        assert page.locator("#features").inner_text() == "weekday, size"
        page.locator("#context").fill("order: 3")
        page.get_by_role("button", name="Predict").click()
        wait(page, "#context-error", "send a context with at least one of weekday, size")
        page.locator("#context").fill("weekday: T, size: 0.5")
        page.get_by_role("button", name="Predict").click()
        wait(page, "#predictions table")
        rows = [row.locator("td").all_inner_texts()[:2] for row in page.locator("#predictions tbody tr").all()]
        expected = agent.predict({"weekday": "T", "size": 0.5})
        assert dict(rows) == {f"arm {arm}": rounded(value, 4) for arm, value in enumerate(expected)}
        page.locator("#where").fill("weekday: T")
        page.get_by_role("button", name="Estimate").click()
        wait(page, "#instead p", "4 rounds, 0 without feedback")
        assert seen.asked == []
        assert [said for said in seen.complaints if "422" not in said] == []  # as the context without features was


CONTRAST = """
() => {
  const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => text.match(/[0-9.]+/g).map(Number);
  const ground = (e) => { for (; e; e = e.parentElement) {
    const found = parse(getComputedStyle(e).backgroundColor); if (found.length < 4 || found[3] > 0) return found; }
    return [255, 255, 255]; };
  const poor = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || !e.checkVisibility() || e.closest("noscript, option")) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(parse(e instanceof SVGElement ? style.fill : style.color)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${node.data.trim()}: ${ratio.toFixed(2)}`);
  }
  return poor;
}
"""


DRAWN = """
([selector, colour]) => {
  const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => text.match(/[0-9.]+/g).map(Number);
  const element = document.querySelector(selector);
  const style = getComputedStyle(element);
  const ground = parse(getComputedStyle(element.closest(".panel")).backgroundColor);
  const mixed = parse(style[colour]).slice(0, 3).map((c, i) => style.opacity * c + (1 - style.opacity) * ground[i]);
  const [a, b] = [light(mixed), light(ground)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}
"""


OUTLINED = """
() => {
  const e = document.activeElement;
  const [style, halo] = [getComputedStyle(e), e.querySelector(".halo")];
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const ringed = halo !== null && getComputedStyle(halo).stroke !== "rgba(0, 0, 0, 0)";
  return e === document.body || outlined || ringed || e.outerHTML.slice(0, 80);
}
"""


@pytest.mark.parametrize("dark", [False, True])
def test_what_is_drawn_can_be_told_from_its_ground(browser, served, dark, service):
    """WCAG 1.4.11: the borders of what can be typed into, and bars, 3 to 1."""
    service.create("ladder", "exp3.g++", sl.graphs.nested(150), seed=1)
    with opened(browser, served, "ladder", dark=dark) as seen:
        page = seen.page
        wait(page, ".strip .seen")
        for selector, colour in (("#mix", "borderTopColor"), (".strip .seen", "fill"), (".strip .played", "fill")):
            assert page.evaluate(DRAWN, [selector, colour]) >= 3, selector
        assert fine(seen)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
@pytest.mark.usefixtures("played")
def test_it_can_be_read_in_the_dark_and_on_a_phone(browser, served, width, dark):
    with opened(browser, served, "models", width=width, dark=dark) as seen:
        page = seen.page
        wait(page, "#guarantee[data-holds]")
        wait(page, "#latest li")
        page.evaluate("async () => { await Promise.all(document.getAnimations().map((each) => each.finished)) }")
        assert seen.overflow <= 0
        assert page.evaluate(CONTRAST) == []
        page.locator("#new").click()
        wait(page, "#create[open]")
        assert page.evaluate(CONTRAST) == []
        assert seen.overflow <= 0
        page.keyboard.press("Escape")
        assert page.locator("#create[open]").count() == 0
        for _ in range(40):  # everything that Tab reaches shows where it is
            page.keyboard.press("Tab")
            assert page.evaluate(OUTLINED) is True
        assert fine(seen)


def test_a_token_is_asked_for_and_forgotten_with_the_tab(browser, nursery, tmp_path):
    database = f"sqlite:///{tmp_path}/closed.db"
    server = nursery.start(database)  # of its own: from the first token on it wants one
    with sl.connect(server.address) as service:
        service.create("models", "exp3.g++", sl.graphs.nested(4), seed=3)
    with contextlib.closing(open_database(database)) as opened_too:
        token = Tokens(opened_too).create("test", ["read"])
    time.sleep(Tokens.fresh_for + 0.1)  # until it looks again
    with visit(browser, f"{server.address}/#/models", until="load") as seen:
        page = seen.page
        wait(page, "#token-form:not([hidden])")
        assert page.evaluate("document.activeElement.id") == "token"
        page.keyboard.type("sl_wrong")
        page.keyboard.press("Enter")
        wait(page, "#token-error", re.compile("."))
        page.get_by_label("Token", exact=True).fill(token)
        page.keyboard.press("Enter")
        wait(page, "#experiment:not([hidden])")
        wait(page, "#link[data-state=live]")
        assert page.locator("#new").is_hidden()  # this token may only read
        assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
        assert token not in page.content()
        assert seen.asked == []
        page.get_by_role("button", name="Forget token").click()
        wait(page, "#token-form:not([hidden])")
    server.stop()


def test_an_experiment_is_frozen_and_deleted_only_after_a_question(browser, served, service):
    agent = service.create("lived", "exp3-set", sl.graphs.nested(4), seed=3, holdout=(1, 0.5))
    for _ in range(20):
        agent.tell(decision := agent.ask(), [0.5] * len(decision.reveals))
    with opened(browser, served, "lived") as seen:
        page = seen.page
        wait(page, "#life .state", "running")
        wait(page, '#answers [data-figure="saved"] dd', "compared with arm 1")
        wait(page, '[data-figure="the holdout"] dd', "of all")
        assert page.locator("#costs svg[role=img] .held-line").count() == 1
        page.locator("#life").get_by_role("button", name="Freeze").click()
        page.locator("#life-input").fill("0: 0.5, 3: 0.5")
        page.locator("#life-confirm").click()
        wait(page, "#life .state", "frozen")
        assert agent.state()["play"] == {"0": 0.5, "3": 0.5}
        wait(page, "#experiments .badge", "frozen")
        page.locator("#life").get_by_role("button", name="Play another").click()
        page.locator("#life-input").fill("2")
        page.locator("#life-confirm").click()
        wait(page, "#life", "It plays arm 2.")
        assert agent.state()["play"] == {"2": 1.0}
        assert agent.ask().drawn_by == "frozen"
        page.locator("#life").get_by_role("button", name="Who did what").click()
        wait(page, "#story li", "froze it, to play arm 0 (50.0 %), arm 3 (50.0 %)")
        page.locator("#life").get_by_role("button", name="Delete").click()
        assert page.locator("#life-confirm").is_disabled()
        page.locator("#life-input").fill("live")
        assert page.locator("#life-confirm").is_disabled()
        page.locator("#life-cancel").click()
        assert agent.state()["state"] == "frozen"
        page.locator("#life").get_by_role("button", name="Delete").click()
        page.locator("#life-input").fill("lived")
        page.locator("#life-confirm").click()
        page.locator("#life-dialog").wait_for(state="hidden")
    assert "lived" not in list(service)


@pytest.mark.parametrize(("button", "learned"), [("Clone", True), ("Clone anew", False)])
def test_a_clone_goes_on_or_begins_anew(browser, served, service, button, learned):
    name, clone = f"original-{learned}", f"copy-{learned}"
    agent = service.create(name, "exp3-set", sl.graphs.nested(4), seed=3)
    for _ in range(5):
        agent.tell(decision := agent.ask(), [0.5] * len(decision.reveals))
    with opened(browser, served, name) as seen:
        page = seen.page
        page.locator("#life").get_by_role("button", name=button, exact=True).click()
        page.locator("#life-input").fill(clone)
        page.locator("#life-confirm").click()
        page.locator("#life-dialog").wait_for(state="hidden")
    same = service[clone].estimates().weights == agent.estimates().weights
    assert bool(same.all()) is learned


def test_a_page_says_that_its_experiment_was_deleted_elsewhere(browser, served, service):
    agent = service.create("soon-gone", "exp3-set", sl.graphs.nested(4), seed=3)
    with opened(browser, served, "soon-gone") as seen:
        page = seen.page
        wait(page, "#link[data-state=live]")
        agent.delete("soon-gone")
        wait(page, "#trouble:not([hidden])", "The experiment soon-gone was deleted.")
        assert page.locator("#experiment").is_hidden()
        page.locator("#experiments a", has_text="soon-gone").wait_for(state="detached")


@pytest.mark.parametrize("pooled", [False, True])
def test_whom_keys_trust_is_drawn_over_time(browser, served, service, pooled):
    name = f"advised-keys-{pooled}"
    made = service.create(name, "glance", sl.graphs.nested(6), seed=1, keyed=True, pooled=pooled)
    for t in range(40):
        batch = made.ask_many(["bread", "milk"], advice={"forecast": [t % 6] * 2, "habit": [3, 3]})
        made.tell_many(batch, abs(batch.reveals - t % 6) / 5)
    with opened(browser, served, name) as seen:
        wait(seen.page, "#trust-panel:not([hidden]) svg")
        wait(seen.page, "#trust .caption", "Each key trusts on its own")
        rates = httpx.get(f"{served.address}/v1/experiments/{name}/rates?minutes=60", timeout=60).json()
        keys = [
            httpx.get(f"{served.address}/v1/experiments/{name}?key={key}", timeout=60).json()
            for key in ("bread", "milk")
        ]
        shares = [{row["name"]: row["trust"] for row in state["advisers"]} for state in keys]
        means = {each: (shares[0][each] + shares[1][each]) / 2 for each in ("forecast", "habit")}
        assert {each: values[-1] or values[-2] for each, values in rates["trust"].items()} == pytest.approx(means)
        assert means["forecast"] > 0.9
        answer = wait(seen.page, '#answers [data-figure="trusts"] dd', "forecast").inner_text()
        assert "of its choice, in the mean of the keys" in answer
        assert fine(seen)


@pytest.mark.parametrize("keyed", [False, True])
def test_spending_is_drawn_against_the_line(browser, served, service, keyed):
    name, known = f"limited-{keyed}", {"ceiling": 0.0003, "cost_bounds": [0.0002, 0.002], "overspend": 0.01}
    made = service.create(name, "glance", sl.graphs.self_loops(2), seed=1, keyed=keyed, **known)
    for _ in range(10):
        batch = made.ask_many(["chat"] if keyed else 1)
        made.tell_many(batch, [0.5], costs=[0.0001])
    with opened(browser, served, name) as seen:
        wait(seen.page, "#spending svg[role=img]")
        text = seen.page.locator("#spending").inner_text()
        assert "0.001 was spent on 10 decisions, 0.002 below the line of 0.003." in text
        assert "A decision may cost 0.0003, and by at most 0.01 in all above that." in text
        wait(seen.page, '#answers [data-figure="spent"] dd', "66.7 % below the line")
        wait(seen.page, '#answers [data-figure="anything wrong?"] dd', "nothing")
        assert fine(seen)


def test_whom_it_trusts_is_drawn_over_time(browser, served, service):
    agent = service.create("advised", "glance", sl.graphs.nested(6), seed=1)
    for t in range(60):
        decision = agent.ask(advice={"forecast": t % 6, "habit": 3})
        agent.tell(decision, {int(arm): abs(int(arm) - t % 6) / 5 for arm in decision.reveals})
    with opened(browser, served, "advised") as seen:
        page = seen.page
        wait(page, "#trust-panel:not([hidden]) svg")
        state = httpx.get(f"{served.address}/v1/experiments/advised", timeout=60).json()
        rates = httpx.get(f"{served.address}/v1/experiments/advised/rates?minutes=60", timeout=60).json()
        shares = {row["name"]: row["trust"] for row in state["advisers"]}
        assert {name: values[-1] or values[-2] for name, values in rates["trust"].items()} == pytest.approx(shares)
        legend = page.locator("#trust .legend").inner_text()
        names = ("forecast", "habit", "the learner itself")
        assert all(line.startswith(name) for line, name in zip(legend.splitlines(), names, strict=True))
        assert shares["forecast"] > 0.9
        # A row that is drawn anew in this moment has the text of its elements alone, with nothing between them.
        cells = "rows => rows.map(row => row.cells[0].textContent)"
        rows = page.locator("#trust tbody tr").evaluate_all(cells)
        assert rows == [row["name"] + row["verdict"] for row in state["advisers"]]
        assert list(shares) == ["forecast", "habit"]
        wait(page, '#answers [data-figure="trusts"] dd', re.compile(r"^forecast\s*[0-9.]+ % of its choice$"))
        assert fine(seen)
