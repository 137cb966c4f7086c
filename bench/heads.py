"""Heads of requests as browsers send them: 64 visitors' page, style, script, picture or call of a script, of twelve
browsers in their shares, with their languages, referring pages, and cookies from none to a kilobyte. They are made from the
lists below with a fixed seed, so that each measurement has the same ones. Field names are in the letters and the order of
each browser. Connection is not among them, as it depends on the load.

    heads.py         prints them, in the form that httpbench --heads reads
"""

import random
import string

COUNT = 64
KEPT = ["-H", "Connection: keep-alive"]  # options of httpbench, where connections are kept open: browsers send that, too
SITE = "https://www.example.org"
PAGES = ("/", "/blog/", "/blog/2026/11/a-longer-walk-along-the-river", "/shop/shoes?size=42&colour=green&sort=price", "/contact")

ENGINE = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{0}.0.0.0"
APPLE = "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{0}"
# Of a hundred visitors so many; the kind; User-Agent; for Chromium its names with versions, and the platform.
BROWSERS = [
    (20, "chromium", f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {ENGINE.format(142)} Safari/537.36", ("Google Chrome", 142, "Windows")),
    (22, "chromium", f"Mozilla/5.0 (Linux; Android 10; K) {ENGINE.format(142)} Mobile Safari/537.36", ("Google Chrome", 142, "Android")),
    (7, "chromium", f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {ENGINE.format(141)} Safari/537.36", ("Google Chrome", 141, "macOS")),
    (3, "chromium", f"Mozilla/5.0 (X11; Linux x86_64) {ENGINE.format(142)} Safari/537.36", ("Google Chrome", 142, "Linux")),
    (7, "chromium", f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {ENGINE.format(142)} Safari/537.36 Edg/142.0.0.0", ("Microsoft Edge", 142, "Windows")),
    (4, "chromium", "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile "
                    "Safari/537.36", ("Samsung Internet", 28, "Android")),
    (16, "safari", f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) {APPLE.format('26.1')} Mobile/15E148 Safari/604.1", None),
    (7, "safari", f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {APPLE.format('26.1')} Safari/605.1.15", None),
    (3, "safari", f"Mozilla/5.0 (iPad; CPU OS 18_6 like Mac OS X) {APPLE.format('18.6')} Mobile/15E148 Safari/604.1", None),
    (6, "firefox", "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0", None),
    (3, "firefox", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", None),
    (2, "firefox", "Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0", None),
]  # fmt: skip
# Sec-Fetch-Dest and -Mode, and how many of ten requests.
KINDS = [("document", "navigate", 3), ("style", "no-cors", 1), ("script", "no-cors", 2), ("image", "no-cors", 3), ("empty", "cors", 1)]
ACCEPT = {
    "document": {
        "chromium": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
                    "application/signed-exchange;v=b3;q=0.7",
        "safari": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "firefox": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    },
    "style": dict.fromkeys(("chromium", "safari", "firefox"), "text/css,*/*;q=0.1"),
    "image": {
        "chromium": "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
        "safari": "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
        "firefox": "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
    },
}  # fmt: skip
LANGUAGES = ("en-US,en;q=0.9", "en-GB,en;q=0.9", "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7", "fr-FR,fr;q=0.9,en;q=0.8", "pt-BR,pt;q=0.9", "ja", "es-ES,es;q=0.9")
COOKIES = (("session", 32), ("theme", 4), ("consent", 60), ("_ga", 26), ("_ga_K2V9", 50), ("csrftoken", 64), ("basket", 180), ("id_token", 600))
FEWEST_COOKIES = 0.3  # of the visitors have none


def cookies(chance):
    """Returns a Cookie field, or none."""
    if chance.random() < FEWEST_COOKIES:
        return []
    some = COOKIES[: chance.randint(1, len(COOKIES))]
    letters = string.ascii_letters + string.digits + "-_."
    return [("Cookie", "; ".join(f"{name}={''.join(chance.choices(letters, k=length))}" for name, length in some))]


def chromium(agent, brand, dest, fetch, accept, language, referer, cookie):
    name, version, platform = brand
    names = f'"Chromium";v="{version if version > 100 else 130}", "{name}";v="{version}", "Not_A Brand";v="99"'
    hints = [("sec-ch-ua", names), ("sec-ch-ua-mobile", "?1" if platform == "Android" else "?0"), ("sec-ch-ua-platform", f'"{platform}"')]
    page = dest == "document"
    fields = [*hints, ("Upgrade-Insecure-Requests", "1")] if page else [("sec-ch-ua-platform", f'"{platform}"')]
    fields += [("User-Agent", agent), *([] if page else hints[:2]), ("Accept", accept), *fetch]
    return [*fields, *referer, ("Accept-Encoding", "gzip, deflate, br, zstd"), ("Accept-Language", language), *cookie]


def safari(agent, _, dest, fetch, accept, language, referer, cookie):
    return [("Sec-Fetch-Dest", dest), ("User-Agent", agent), ("Accept", accept), *referer, *fetch[:2], ("Accept-Language", language),
            ("Priority", "u=0, i" if dest == "document" else "u=3, i"), ("Accept-Encoding", "gzip, deflate, br"), *cookie]  # fmt: skip


def firefox(agent, _, dest, fetch, accept, language, referer, cookie):
    fields = [("User-Agent", agent), ("Accept", accept), ("Accept-Language", language),
              ("Accept-Encoding", "gzip, deflate, br, zstd"), *referer, *cookie]  # fmt: skip
    ends = [("Upgrade-Insecure-Requests", "1")] if dest == "document" else []
    return [*fields, *ends, *sorted(fetch), ("Priority", "u=0, i" if dest == "document" else "u=4")]


def head(chance):
    """Returns the fields of a head, without Host: (name, value)."""
    (_, kind, agent, brand), = chance.choices(BROWSERS, [browser[0] for browser in BROWSERS])  # fmt: skip
    (dest, mode, _), = chance.choices(KINDS, [often for *_, often in KINDS])  # fmt: skip
    first = dest == "document" and chance.random() < 0.4  # from elsewhere, or typed
    site, referer = ("none", []) if first else ("same-origin", [("Referer", SITE + chance.choice(PAGES))])
    fetch = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode), *([("Sec-Fetch-User", "?1")] if dest == "document" else []), ("Sec-Fetch-Dest", dest)]
    accept = ACCEPT.get(dest, {}).get(kind, "*/*")
    makes = {"chromium": chromium, "safari": safari, "firefox": firefox}[kind]
    return makes(agent, brand, dest, fetch, accept, chance.choice(LANGUAGES), referer, cookies(chance))


def heads():
    """Returns COUNT lists of lines."""
    chance = random.Random(1)
    return [[f"{name}: {value}" for name, value in head(chance)] for _ in range(COUNT)]


def text():
    """Returns the heads as httpbench --heads reads them."""
    return "\n\n".join("\n".join(lines) for lines in heads()) + "\n"


def write(path):
    """Writes them to a file. Returns the options of httpbench that send them."""
    path.write_text(text())
    return ["--heads", path]


if __name__ == "__main__":
    print(text(), end="")
