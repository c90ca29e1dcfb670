"""The page in a browser: no request, sorting, keyboard, narrow screens, dark mode. Needs playwright and chromium."""

import os
import shutil

import pytest

from tests.support.sample_page import measured, runs_of, sample_page, tables_page

CHROMIUM = shutil.which("chromium")
SEARCH = "details:has(#figure-search_contrastive_history)"
# CI has installed it, and fails without.
pytestmark = pytest.mark.skipif(CHROMIUM is None and "CI" not in os.environ, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(sample_page(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def visit(browser, address):
    """A function that opens the page with the given settings of the browser."""
    pages = []

    def opened(width=1280, height=900, address=address, unfolded=False, **settings):
        page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce", **settings)
        pages.append(page)
        page.goto(address)
        if unfolded:
            page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        return page

    yield opened
    for page in pages:
        page.close()


def test_the_page_loads_without_requests_and_errors(browser, address):
    page = browser.new_page()
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address, wait_until="networkidle")
    page.locator(f"{SEARCH} > summary").click()
    page.wait_for_timeout(200)
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [address]
    broken = "[...document.images].filter(image => image.complete && !image.naturalWidth).length"
    assert page.evaluate(broken) == 0
    page.close()


def names(page):
    return [text.strip() for text in page.locator("#scores tbody th").all_inner_texts()]


def test_a_click_sorts_by_value_in_both_directions_and_back(visit):
    page = visit(unfolded=True)
    experiment = measured()
    means = {title: sum(runs_of(experiment, key)) / 3 for key, title in experiment.plan.titles.items()}
    original = names(page)
    header = page.locator("#scores thead tr:last-child th").last
    header.locator("button").click()
    assert names(page) == sorted(means, key=means.get, reverse=True)
    assert header.get_attribute("aria-sort") == "descending"
    assert "descending" in page.locator("#announcement").inner_text()
    header.locator("button").click()
    assert names(page) == sorted(means, key=means.get)
    assert header.get_attribute("aria-sort") == "ascending"
    header.locator("button").click()
    assert names(page) == original
    assert header.get_attribute("aria-sort") == "none"


def test_numbers_sort_as_numbers_and_missing_ones_stay_last(visit):
    page = visit(unfolded=True)
    cells = "#scores tbody td:last-child"
    page.evaluate(
        f"""[...document.querySelectorAll("{cells}")].forEach((cell, place) => {{
          cell.dataset.sort = ["9", "10", "", "-1", "1e-7"][place];
        }})"""
    )
    button = page.locator("#scores thead th button").last
    keys = f'[...document.querySelectorAll("{cells}")].map(cell => cell.dataset.sort)'
    button.click()
    assert page.evaluate(keys) == ["10", "9", "1e-7", "-1", ""]
    button.click()
    assert page.evaluate(keys) == ["-1", "1e-7", "9", "10", ""]


def test_the_origin_of_a_mean_is_shown_by_mouse_and_keyboard(visit):
    page = visit()
    tip = page.locator("#tip")
    cells = page.locator(".ranking .tip")
    assert not tip.is_visible()
    cells.first.hover()
    tip.wait_for(state="visible")
    assert tip.inner_text().startswith("Normalized Softmax\nruns: ")
    page.mouse.move(0, 0)
    cells.first.focus()
    page.keyboard.press("ArrowDown")
    assert tip.inner_text().startswith("Proxy-Anchor\nruns: ")
    assert page.evaluate("document.activeElement.getAttribute('aria-describedby')") == "tip"
    assert page.locator(".ranking .tip[tabindex='0']").count() == 1
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_a_sign_of_a_pair_is_explained_and_leads_to_the_list(visit):
    page = visit(width=400)
    page.locator(".matrix .mark").first.click()
    assert page.locator("#tip").inner_text().startswith("Normalized Softmax − ")
    page.locator("#matrix a").click()
    assert page.locator("#pairs table").is_visible()


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_never_scrolls_sideways(visit, width):
    page = visit(width=width, height=740, unfolded=True)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    table = page.locator("#scores .scroll").first
    inner, outer = table.evaluate("box => [box.scrollWidth, box.clientWidth]")
    assert inner >= outer
    if width == 360:
        assert inner > outer, "a wide table scrolls in its own box"
    images = [image.bounding_box() for image in page.locator("figure img").all()]
    assert images
    assert all(image["x"] >= 0 and image["x"] + image["width"] <= width for image in images), "figures are shown whole"


TABLES = """() => [...document.querySelectorAll("table")].map(table => {
  const box = table.closest(".scroll") ?? table.parentElement;
  const lines = cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(part => Math.round(part.bottom))).size;
  };
  const words = cell => cell.textContent.trim().split(/[\\s-]+/).length;
  const cells = [...table.querySelectorAll("th, td")].filter(cell => !cell.querySelector("ol, .plot"));
  return {
    name: box.ariaLabel ?? table.className,
    inner: box.scrollWidth,
    outer: box.clientWidth,
    scrolls: getComputedStyle(box).overflowX === "auto",
    // A cell has a line for each word at most, and one for its sign of sorting or of leading.
    broken: cells.filter(cell => lines(cell) > words(cell) + 1).map(cell => cell.textContent),
  };
})"""


@pytest.fixture(
    scope="module",
    params=["mlrc_frozen_cub200_random_start_subset", "reality_check_glyphs", "all_methods_glyphs"],
    ids=["two methods", "fourteen methods", "31 methods"],
)
def of_record(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(tables_page(request.param), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", [400, 800, 1280, 1600])
def test_no_table_is_clipped_on_a_screen_and_none_breaks_words_on_a_telephone(visit, of_record, width):
    page = visit(width=width, address=of_record, unfolded=True)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    tables = page.evaluate(TABLES)
    assert len(tables) >= 5
    assert [table for table in tables if table["broken"]] == []
    wider = [table for table in tables if table["inner"] > table["outer"]]
    assert all(table["scrolls"] for table in wider)
    assert width < 800 or wider == []


LUMINANCE = """selector => {
  let place = document.querySelector(selector);
  const color = getComputedStyle(place).color;
  while (getComputedStyle(place).backgroundColor === "rgba(0, 0, 0, 0)") place = place.parentElement;
  const style = {color, backgroundColor: getComputedStyle(place).backgroundColor};
  const linear = text => text.match(/[0-9.]+/g).slice(0, 3).map(value => {
    const part = Number(value) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return [style.color, style.backgroundColor].map(linear).map(([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_scheme_have_their_colours_and_contrast(visit, scheme):
    page = visit(color_scheme=scheme, unfolded=True)
    for selector in ("body", ".table tbody th", ".sortable td"):
        text, ground = page.evaluate(LUMINANCE, selector)
        assert ground < 0.05 if scheme == "dark" else ground > 0.8
        assert (max(text, ground) + 0.05) / (min(text, ground) + 0.05) > 7
    card = page.evaluate(LUMINANCE, ".card")[1]
    assert card == pytest.approx(1), "figures keep their white ground"


def test_the_printed_page_is_dark_on_white_without_navigation_and_fits_a_sheet(visit):
    page = visit(width=718, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    text, ground = page.evaluate(LUMINANCE, "body")
    assert (text, ground) == (pytest.approx(0), pytest.approx(1))
    assert not page.locator("nav").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 718


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_the_first_screen_has_the_answer_its_limits_and_the_whole_ranking(visit, width, height):
    page = visit(width=width, height=height)
    for selector in (".headline", ".limits", ".ranking"):
        box = page.locator(selector).bounding_box()
        assert box["x"] >= 0
        assert box["y"] + box["height"] <= height
    for selector in (".ranking td.number .value", ".ranking .plot"):
        for cell in page.locator(selector).all():
            box = cell.bounding_box()
            assert box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") == width
