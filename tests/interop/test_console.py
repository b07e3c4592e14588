"""The console in a real Chromium: live, by keyboard, on a phone, light and dark, for 50 browsers.

Debian's `chromium-headless-shell` or `chromium` is needed (`apt-get install`), and axe-core, which
npm fetches into `build/axe`.
"""

import subprocess
import tarfile
from pathlib import Path
from time import monotonic
from typing import Final, Literal

from playwright.sync_api import Browser, Dialog, Page

from tests.interop.browsers import DESK, Served, in_browser, opened, wait_live
from tests.interop.peers import PeerUnavailable

AXE: Final = Path(__file__).parents[2] / "build" / "axe"
AXE_VERSION: Final = "4.14.1"
PATHS: Final = (
    "",
    "/flows",
    "/partitions",
    "/groups",
    "/sites",
    "/promotions",
    "/promotions?epoch=3",
    "/rehearsals",
    "/rehearsals?number=12",
    "/audit",
    "/divergence",
    "/peek",
    "/peek?topic=orders",
)
RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
PHONE: Final[dict[str, int]] = {"width": 390, "height": 844}
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
FIRST_PAINT_MS: Final = 1_000
PAINTED: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
"""Nothing before the page is painted, which may be after it has been loaded."""
PAINTED_WITHIN_S: Final = 30.0


def axe() -> str:
    """Return the script that looks for what keeps people out of a page."""
    script = AXE / "package" / "axe.min.js"
    if not script.exists():
        AXE.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(
                ["npm", "pack", f"axe-core@{AXE_VERSION}"],
                cwd=AXE, check=True, capture_output=True, timeout=120,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as fault:
            raise PeerUnavailable(f"axe-core: {fault}") from fault
        with tarfile.open(AXE / f"axe-core-{AXE_VERSION}.tgz") as packed:
            packed.extractall(AXE, filter="data")
    return script.read_text()


def barriers(page: Page, where: str, script: str) -> list[str]:
    """Return what keeps people out of a page, light and dark: both are looked at in one load."""
    found: list[str] = []
    page.evaluate(script)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        seen = page.evaluate(f"axe.run(document, {{runOnly: {RULES}}})")
        found += [f"{where} {scheme}: {one['id']}" for one in seen["violations"]]
    wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return [*found, f"{where}: wider than the screen by {wider}"] if wider > 0 else found


async def test_every_page_is_for_everybody_on_a_desk_and_on_a_phone_light_and_dark() -> None:
    script = axe()

    def look(browser: Browser, console: Served) -> list[str]:
        found: list[str] = []
        for name, screen in (("desk", DESK), ("phone", PHONE)):
            for path in PATHS:
                # axe puts styles into the page, which the page's policy forbids.
                page = opened(browser, console.address + path, viewport=screen, bypass_csp=True)
                found += barriers(page, f"{path} {name}", script)
                page.context.close()
        return found

    assert await in_browser(look) == []


def painted_ms(page: Page) -> float:
    """Return when the page was painted first; its policy lets Playwright wait for no function."""
    deadline_s = monotonic() + PAINTED_WITHIN_S
    while (at_ms := page.evaluate(PAINTED)) is None:
        assert monotonic() < deadline_s, "never painted"
        page.wait_for_timeout(20)
    return float(at_ms)


async def test_the_first_paint_of_many_partitions_and_groups_is_soon() -> None:
    def look(browser: Browser, console: Served) -> dict[str, float]:
        painted: dict[str, float] = {}
        for path in ("", "/groups", "/groups?q=99&sort=lag", "/partitions"):
            times = []
            for _ in range(3):  # of which a busy machine spoils some
                page = opened(browser, console.address + path)
                times.append(painted_ms(page))
                page.context.close()
            painted[path] = min(times)
        return painted

    painted = await in_browser(look)
    assert max(painted.values()) < FIRST_PAINT_MS, painted


async def test_steps_of_a_promotion_appear_by_themselves_and_a_lost_server_is_said() -> None:
    def look(browser: Browser, console: Served) -> None:
        page = opened(browser, console.address)
        assert page.get_by_text("Promotion under way").count() == 0
        page.evaluate("window.isTheSamePage = true")
        console.console.is_promoting = True
        page.get_by_text("Promotion under way").wait_for(timeout=10_000)
        assert page.locator(".steps li").count() == 13
        assert page.evaluate("window.isTheSamePage"), "nothing was loaded again"
        console.stop()
        page.locator("#live").filter(has_text="NOT live since").wait_for(timeout=30_000)

    await in_browser(look)


async def test_all_is_reached_by_the_keyboard_and_the_focus_outlasts_changes() -> None:
    def look(browser: Browser, console: Served) -> None:
        page = opened(browser, console.address)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.textContent")
        assert focused == "Last audit"
        console.console.is_promoting = True  # the piece that has the focus changes as well
        page.get_by_text("Promotion under way").wait_for(timeout=10_000)
        assert page.evaluate("document.activeElement.textContent") == focused
        page.goto(f"{console.address}/groups")
        for _ in range(20):
            if page.evaluate("document.activeElement.id") == "q":
                break
            page.keyboard.press("Tab")
        page.keyboard.type("group-777")
        page.keyboard.press("Enter")
        page.get_by_text("11 of 10,000 groups").wait_for(timeout=10_000)
        assert page.locator("tbody tr").count() == 11

    await in_browser(look)


async def test_hostile_names_are_text() -> None:
    def look(browser: Browser, console: Served) -> None:
        for path in ("/groups", "/flows", "/groups?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"):
            page = browser.new_context().new_page()
            said: list[str] = []

            def note(one: Dialog, said: list[str] = said) -> None:
                said.append(one.message)

            page.on("dialog", note)
            page.goto(console.address + path)
            page.wait_for_timeout(1_500)  # the same page comes again as an event
            assert said == []
            assert page.locator("#parts script").count() == 0
            assert page.get_by_text("<script>alert(1)</script>").count() > 0
            page.context.close()

    await in_browser(look)


async def test_fifty_browsers_are_live_at_once() -> None:
    def look(browser: Browser, console: Served) -> None:
        pages = [browser.new_context().new_page() for _ in range(50)]
        for number, page in enumerate(pages):
            page.goto(f"{console.address}/groups?q={number % 7}", wait_until="commit")
        for page in pages:
            wait_live(page)
        opened(browser, console.address)

    await in_browser(look)
