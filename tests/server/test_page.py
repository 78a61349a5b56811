"""The chat page in a headless Chromium: open, send, stream with a folded thought, stop, an error shown, an answer cut by its limit, a phone's width;
nothing is asked of any other host. Skipped without the Python package playwright and a chromium. LAGEN_SHOTS=DIR keeps what it looked like."""
import os
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server, named

STUB = ["ctx=4096", "slots=2"]


def started():
    """Playwright at work, and a browser; both are to be ended by who asked."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as e:
        raise client.tap.Skip("the Python package playwright is not installed") from e
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        raise client.tap.Skip("there is no chromium")
    play = sync_playwright().start()
    return play, play.chromium.launch(executable_path=program, args=["--no-sandbox"])


class Page:
    def __init__(self, s, width, height):
        self.play, self.browser = started()
        self.page = self.browser.new_page(viewport={"width": width, "height": height})
        self.asked, self.wrong, self.width, self.n = [], [], width, 0
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.on("pageerror", lambda e: self.wrong.append(str(e)))
        self.page.on("console", lambda m: self.wrong.append(m.text) if m.type == "error" and "status of 4" not in m.text else None)
        self.home = f"http://127.0.0.1:{s.port}/"
        self.page.goto(self.home)
        self.wait("tokens", "#status")

    def wait(self, text, where, seconds=10):
        self.page.wait_for_function("([w, t]) => [...document.querySelectorAll(w)].some(e => e.textContent.includes(t))", arg=[where, text],
                                    timeout=seconds * 1000)

    def say(self, text):
        self.page.fill("#input", text)
        self.page.press("#input", "Enter")

    def done(self):
        self.page.wait_for_function("() => document.getElementById('send').textContent === 'Send'", timeout=10000)

    def shot(self, name):
        if os.environ.get("LAGEN_SHOTS"):
            self.n += 1
            self.page.screenshot(path=f"{os.environ['LAGEN_SHOTS']}/{self.width}-{self.n}-{name}.png")

    def fits(self):
        assert self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "wider than the window"

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.browser.close()
        self.play.stop()
        if kind is None:
            assert all(u.startswith(self.home) for u in self.asked), self.asked
            assert not self.wrong, self.wrong


def talk(p, s):
    p.shot("open")
    p.say("say:<think>I look at it. " + "Then more. " * 8 + "</think>Hello <b>there</b>.\\x0a" + "A long line of words. " * 20)
    p.wait("Hello <b>there</b>.", ".turn > .text")  # as text, not as HTML
    p.done()
    assert p.page.locator("details").count() == 1 and not p.page.locator("details").evaluate("e => e.open")
    p.wait("tokens/s", "small")
    p.wait(" of 4096 tokens", "#status")
    p.fits()
    p.shot("answered")
    p.page.click("summary")
    p.shot("thought")
    p.say("#delay=30 #loop say:word ")
    p.wait("wordword", ".turn > .text")
    assert p.page.inner_text("#send") == "Stop"
    p.shot("streaming")
    p.page.click("#send")
    p.done()
    end = time.monotonic() + 5
    while s.get("/health").json["running"] > 0:
        assert time.monotonic() < end, "the answer goes on after Stop"
        time.sleep(0.02)
    p.say("#fail=2 say:This will break off here.")
    p.wait("the script says so", ".error")
    p.shot("error")
    p.page.click("#clear")
    assert p.page.locator(".turn").count() == 0
    p.say("#delay=1 #loop say:abc def ")
    p.wait("ended this answer", ".error", 30)
    p.fits()
    p.shot("limit")
    p.page.click("#clear")
    p.say("x" * 5000)
    p.wait("4096", ".error:last-child")
    p.done()
    assert p.page.input_value("#input") == "x" * 5000  # to be changed and sent again
    p.shot("too-long")


@named("the chat page in a browser, on a desk")
def test_desk():
    with Server(stub_args=STUB) as s, Page(s, 1280, 800) as p:
        talk(p, s)


@named("the chat page in a browser, at a phone's width")
def test_phone():
    with Server(stub_args=STUB) as s, Page(s, 360, 640) as p:
        talk(p, s)
        sizes = p.page.evaluate("[...document.querySelectorAll('button')].map(b => b.getBoundingClientRect().height)")
        assert min(sizes) >= 36, sizes


@named("the chat page of a server that asks for a key")
def test_key():
    with Server("--api-key-file", key_file(), stub_args=STUB, key="a-long-enough-key") as s:
        p = Page.__new__(Page)
        answers = ["a-long-enough-key"]
        p.play, p.browser = started()
        p.home, p.asked, p.wrong = "", [], []
        with p:
            p.page = p.browser.new_page()
            p.page.on("dialog", lambda d: d.accept(answers.pop()) if answers else d.dismiss())
            p.page.goto(f"http://127.0.0.1:{s.port}/")
            p.wait("the key is kept", "#model")
            p.page.reload()
            p.wait("stub", "#model")
            p.say("say:With a key.")
            p.wait("With a key.", ".turn > .text")


def key_file():
    path = client.ROOT / "build" / "page.keys"
    path.write_text("a-long-enough-key\n")
    return path


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
