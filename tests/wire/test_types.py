"""What files are said to be: the media type, the charset, and the coding in which they are stored."""

import gzip
import os

import brotli
import pytest

from gatling import Root, Server, eventually

pytestmark = pytest.mark.decided

LARGE = 200_000  # bytes; not kept in memory, and only its beginning is looked at
PAGE = "<!doctype html><title>a</title><p>%s\n"
KOI8 = "<!doctype html><meta charset=koi8-r><p>Привет\n".encode("koi8-r")
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>' * 20


@pytest.fixture(name="serve")
def fixture_serve(build, put):
    """Returns a function that serves a file, and returns the response to a request for it."""
    return lambda name, content, *fields: put(name, content)("/" + name, *fields)


@pytest.mark.parametrize(
    "name,content,kind",
    [
        ("a.html", (PAGE % "ü").encode(), "text/html; charset=utf-8"),
        ("a.html", (PAGE % "u").encode(), "text/html; charset=utf-8"),
        ("a.html", (PAGE % "ü").encode("latin-1"), "text/html"),
        ("a.html", KOI8, "text/html"),
        ("a.html", b"<meta charset=iso-8859-1><form>", "text/html"),  # its forms are sent in that, too
        ("a.html", (PAGE % "ü").encode("utf-16"), "text/html"),
        ("a.html", b"\xef\xbb\xbf" + (PAGE % "u").encode(), "text/html; charset=utf-8"),
        ("a.css", 'a::after { content: "ü" }'.encode("latin-1"), "text/css"),
        ("a.js", "// ü".encode("latin-1"), "text/javascript"),
        ("a.js", "// ü\x01".encode(), "text/javascript; charset=utf-8"),
        ("a.txt", "こんにちは".encode("shift-jis"), "text/plain"),
        ("a.txt", "こんにちは".encode("iso-2022-jp"), "text/plain"),
        ("a.txt", "こんにちは".encode("euc-jp"), "text/plain"),
        ("a.csv", b"", "text/csv; charset=utf-8"),
        ("a.xml", '<?xml version="1.0" encoding="iso-8859-1"?><a>ü</a>'.encode("latin-1"), "application/xml"),
        ("a.xml", '<?xml version="1.0"?><a>ü</a>'.encode(), "application/xml"),
        ("a.opml", b'<?xml version="1.0" encoding="koi8-r"?><opml/>', "text/x-opml"),
        ("a.json", '"ü"'.encode(), "application/json"),
    ],
)
def test_text_is_said_to_be_in_utf8_if_it_is(serve, name, content, kind):
    assert serve(name, content)["Content-Type"] == kind


@pytest.mark.parametrize(
    "start,end,kind",
    [
        ("ü", "", "text/html; charset=utf-8"),
        ("ü".encode("latin-1"), "", "text/html"),
        ("", "ü", "text/html"),  # what follows may be anything
        ("<meta charset=utf-8>", "", "text/html; charset=utf-8"),
        ("<meta charset=iso-8859-1>", "", "text/html"),
        ("ü" * 100_000, "", "text/html; charset=utf-8"),  # a character lies across the end of what is read
        ("x" + "ü" * 100_000, "", "text/html; charset=utf-8"),
    ],
)
def test_of_a_large_text_the_beginning_tells(serve, start, end, kind):
    def encoded(text):
        return text if isinstance(text, bytes) else text.encode()

    content = encoded(start) + b" " * LARGE + encoded(end)
    response = serve("a.html", content)
    assert response["Content-Type"] == kind and response.body == content


def test_copies_in_other_codings_are_said_to_be_what_the_file_is(build):
    latin, utf8 = (PAGE % ("ü" * 500)).encode("latin-1"), (PAGE % ("ü" * 500)).encode()
    files = {"latin.html": latin, "utf8.html": utf8, "two.html": latin, "two.html.gz": gzip.compress(latin)}
    files |= {"br.html": latin, "br.html.br": brotli.compress(latin)}
    files |= {"only.html.gz": gzip.compress(latin), "fine.html.gz": gzip.compress(utf8), "README.gz": gzip.compress(utf8)}
    files |= {"big.html.gz": gzip.compress(utf8 + b"x" * LARGE), "vague.html.gz": gzip.compress(b"x" * LARGE)}
    files |= {"unknown.html.br": brotli.compress(utf8), "bad.html.gz": b"\x1f\x8bnone"}
    with Server(build, Root(files), "-j", "1") as server:
        for name, coding in (("latin", "gzip"), ("utf8", "gzip"), ("two", "gzip"), ("br", "br")):
            for field in (f"Accept-Encoding: {coding}", "Accept-Encoding: identity"):
                response = server.get(f"/{name}.html", field)
                assert response["Content-Type"] == "text/html" + "; charset=utf-8" * (name == "utf8")
                assert response["Content-Encoding"] == (coding if coding in field else None)
        for name, kind in (("only.html", "text/html"), ("fine.html", "text/html; charset=utf-8"), ("README", "text/plain; charset=utf-8"),
                           ("big.html", "text/html; charset=utf-8"), ("vague.html", "text/html"), ("bad.html", "text/html")):  # fmt: skip
            response = server.get("/" + name, "Accept-Encoding: gzip")
            assert response["Content-Encoding"] == "gzip" and response["Content-Type"] == kind, name
        assert server.get("/only.html")["Content-Type"] == "text/html" and server.get("/only.html").body == latin
        assert server.get("/unknown.html", "Accept-Encoding: br")["Content-Type"] == "text/html"


def test_a_file_that_changes_its_charset_is_said_to_have_the_new_one(build):
    root = Root({"a.html": (PAGE % "ü").encode("latin-1")})
    with Server(build, root, "-j", "1") as server:
        assert server.get("/a.html")["Content-Type"] == "text/html"
        root.write("new", (PAGE % "ü").encode())
        (root.path / "new").rename(root.path / "a.html")
        eventually(lambda: server.get("/a.html")["Content-Type"] == "text/html; charset=utf-8", 5)


@pytest.mark.parametrize("name", ["feed", "a.unheard", "a.plist"])
@pytest.mark.parametrize(
    "content,kind",
    [
        (b'<?xml version="1.0"?><plist/>', "application/xml"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- a -->\n<rss>", "application/rss+xml"),
        (b"<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml"),
        (b"<?xml version='1.0'?><svg/>", "image/svg+xml"),
        (b"<svg/>", "text/plain; charset=utf-8"),
        (b"bplist00\xd1\x01", "application/octet-stream"),
    ],
)
def test_xml_without_a_name_that_tells_it_is_xml(serve, name, content, kind):
    response = serve(name, content)
    assert response["Content-Type"] == kind and response["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "extension,kind",
    [
        ("xsl", "application/xslt+xml"), ("xslt", "application/xslt+xml"), ("rdf", "application/rdf+xml"),
        ("kml", "application/vnd.google-earth.kml+xml"), ("gpx", "application/gpx+xml"), ("xsd", "application/xml"),
        ("glb", "model/gltf-binary"), ("gltf", "model/gltf+json"), ("m4s", "video/iso.segment"), ("m3u8", "application/vnd.apple.mpegurl"),
        ("pls", "audio/x-scpls"), ("wgsl", "text/wgsl; charset=utf-8"), ("usdz", "model/vnd.usdz+zip"), ("pkpass", "application/vnd.apple.pkpass"),
        ("ttl", "text/turtle; charset=utf-8"), ("nt", "application/n-triples"), ("3mf", "model/3mf"), ("aif", "audio/x-aiff"),
        ("rs", "text/plain; charset=utf-8"), ("php", "text/plain; charset=utf-8"), ("pub", "text/plain; charset=utf-8"),
        ("ts", "text/plain; charset=utf-8"), ("mts", "text/plain; charset=utf-8"), ("jsx", "text/plain; charset=utf-8"),
        ("crt", "application/x-x509-ca-cert"), ("ipynb", "application/x-ipynb+json"), ("123", "application/vnd.lotus-1-2-3"),
        ("zaz", "application/vnd.zzazz.deck+xml"),
    ],
)  # fmt: skip
def test_types_of_the_list(serve, extension, kind):
    assert serve("a." + extension, b"x")["Content-Type"] == kind


@pytest.mark.parametrize("size", [188, LARGE])
def test_a_transport_stream_is_no_typescript(serve, size):
    assert serve("a.ts", (b"G\0\x11\x10" + b"\xff" * 184) * (size // 188))["Content-Type"] == "video/mp2t"


# --- files that are stored in a coding ---


@pytest.mark.parametrize("name", ["a.svgz", "a.SVGZ"])
@pytest.mark.parametrize("padding", [b"", os.urandom(LARGE)], ids=["small", "large"])
def test_svgz_is_svg_in_gzip(serve, name, padding):
    content = gzip.compress(SVG) + padding
    for fields in ([], ["Accept-Encoding: gzip"], ["Accept-Encoding: identity"]):
        response = serve(name, content, *fields)
        assert response.status == 200 and response.body == content
        assert response["Content-Type"] == "image/svg+xml" and response["Content-Encoding"] == "gzip"


def test_svgz_that_is_not_compressed_is_not_said_to_be(serve):
    response = serve("a.svgz", SVG, "Accept-Encoding: identity")
    assert response["Content-Type"] == "image/svg+xml" and response["Content-Encoding"] is None and response.body == SVG


CODINGS = [("gz", "gzip"), ("br", "br")]


def unity():
    """Returns the files of a build by Unity, compressed, and rules as its manual has them."""
    content = {"x.data": b"UnityWebData1.0\0" * 100, "x.wasm": b"\0asm\1\0\0\0" * 100, "x.framework.js": b"function unityFramework() {}\n" * 100}
    files = {f"Build/{name}.gz": gzip.compress(data) for name, data in content.items()}
    files |= {f"Build/{name}.br": brotli.compress(data) for name, data in content.items()}
    rules = "".join(f"/Build/{name}.{suffix}\n  Content-Encoding: {coding}\n" for name in content for suffix, coding in CODINGS)
    return files | {"_headers": rules.encode()}, content


def test_what_the_owner_says_is_stored_in_a_coding_is_sent_with_it(build):
    files, content = unity()
    types = {"x.data": "application/octet-stream", "x.wasm": "application/wasm", "x.framework.js": "text/javascript"}
    with Server(build, Root(files), "-j", "1") as server:
        for name in content:
            for suffix, coding in CODINGS:
                stored = files[f"Build/{name}.{suffix}"]
                for fields in ([], ["Accept-Encoding: gzip, br"], ["Accept-Encoding: identity"]):
                    response = server.get(f"/Build/{name}.{suffix}", *fields)
                    assert response.status == 200 and response.body == stored and response["Content-Encoding"] == coding
                    utf8 = name.endswith(".js") and suffix == "gz"  # only gzip can be looked into
                    assert response["Content-Type"] == types[name] + "; charset=utf-8" * utf8
                parts = server.get(f"/Build/{name}.{suffix}", "Range: bytes=0-0,2-2")
                assert parts.status == 206 and parts["Content-Encoding"] == coding
                part = server.get(f"/Build/{name}.{suffix}", "Range: bytes=1-2")
                assert part.status == 206 and part.body == stored[1:3] and part["Content-Encoding"] == coding
                etag = server.get(f"/Build/{name}.{suffix}")["ETag"]
                unchanged = server.get(f"/Build/{name}.{suffix}", "If-None-Match: " + etag)
                assert unchanged.status == 304 and unchanged["Content-Encoding"] is None
            # by its own name it is chosen as any other precompressed copy
            assert server.get(f"/Build/{name}", "Accept-Encoding: br")["Content-Encoding"] == "br"
            assert server.get(f"/Build/{name}").body == content[name]


def test_the_owners_type_and_coding_go_together(build):
    stored = gzip.compress(b"a" * 1000)
    rules = b"/a/*\n  Content-Encoding: gzip\n  Content-Type: application/x-own\n/a/b\n  Content-Encoding: gzip\n/a/c\n  ! Content-Encoding\n"
    large = gzip.compress(os.urandom(LARGE))
    files = {"_headers": rules, "a/x.html": stored, "a/b": stored, "a/c": stored, "a/plain.html": b"b" * 1000, "a/large": large,
             "a/x.html.br": brotli.compress(b"a" * 1000)}  # fmt: skip
    with Server(build, Root(files), "-j", "1") as server:
        response = server.get("/a/x.html", "Accept-Encoding: gzip")
        assert response.body == stored and response["Content-Encoding"] == "gzip" and response["Content-Type"] == "application/x-own"
        assert server.get("/a/x.html", "Accept-Encoding: br")["Content-Encoding"] == "br"
        assert server.get("/a/b")["Content-Encoding"] == "gzip"  # two patterns say it
        assert server.get("/a/c")["Content-Encoding"] is None
        plain = server.get("/a/plain.html")
        assert plain["Content-Encoding"] is None and plain.body == b"b" * 1000  # it is not in gzip, whatever the rule says
        for _ in range(3):  # also once its hash is known
            assert server.get("/a/large")["Content-Encoding"] == "gzip" and server.get("/a/large").body == large


def test_what_is_sent_for_another_path_is_not_in_that_coding(build):
    files = {"_headers": b"/*\n  Content-Encoding: br\n", "404.html": b"none", "list/a": b"a", "_redirects": b"/old /new\n/app/* /404.html 200\n"}
    with Server(build, Root(files), "-j", "1") as server:
        for path, status in (("/none", 404), ("/list/", 200), ("/list", 301), ("/old", 301), ("/app/x", 200)):
            response = server.get(path, "Accept-Encoding: identity")
            assert response.status == status and response["Content-Encoding"] is None, path
