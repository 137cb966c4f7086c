"""A WSGI application that returns the parameters and the content of the request."""


def application(environ, start_response):
    content = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    names = ("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "REMOTE_ADDR")
    start_response("202 Accepted", [("Content-Type", "text/plain")])
    return [" ".join(environ.get(name, "") for name in names).encode(), b"\n", content]
