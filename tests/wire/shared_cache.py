"""A shared cache that does whatever RFC 9111 allows: it stores all that it may, and answers with it whenever it may."""

import re

CONDITIONS = "If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"
# Statuses whose answers it stores (RFC 9111, section 3, with explicit freshness; RFC 9110, section 15.1).
STORED = {200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501}


def values(fields, name):
    """Returns the value of a field, lines joined as one list, or None."""
    found = [value.strip() for key, value in fields if key.lower() == name.lower()]
    return ", ".join(found) if found else None


def elements(value):
    return [one.strip() for one in (value or "").split(",") if one.strip()]


def opaque(tag):
    return tag.removeprefix("W/")


class Stored:
    def __init__(self, request, response):
        self.response, self.vary = response, [name.lower() for name in elements(values(response.fields, "Vary"))]
        self.keys = {name: values(request, name) for name in self.vary}
        self.control = (values(response.fields, "Cache-Control") or "").lower()

    def matches(self, request):
        """Returns whether it was selected by the same fields (RFC 9111, section 4.1)."""
        return "*" not in self.vary and all(values(request, name) == value for name, value in self.keys.items())

    def is_fresh(self):
        age = re.search(r"max-age=(\d+)", self.control)
        return "no-cache" not in self.control and age and int(age[1]) > 0


class SharedCache:
    """ask(method, path, fields) returns the answer of the server. all_tags: it asks with the entity-tags of all that it has of a path, not only of what the
    same fields have selected (section 4.3.1). kept: by path, what is stored."""

    def __init__(self, ask, all_tags):
        self.ask, self.all_tags, self.kept, self.hits, self.revalidated = ask, all_tags, {}, 0, 0

    def _store(self, path, request, response):
        stored = Stored(request, response)
        if response.status not in STORED or "private" in stored.control or "no-store" in stored.control or "*" in stored.vary:
            return
        others = [other for other in self.kept.get(path, []) if not (other.keys == stored.keys)]
        self.kept[path] = [*others, stored]

    def get(self, method, path, fields):
        """Returns what a client gets through the cache."""
        if method not in ("GET", "HEAD") or values(fields, "Range") or values(fields, "Authorization"):
            return self.ask(method, path, fields)
        matching = [stored for stored in self.kept.get(path, []) if stored.matches(fields)]
        for stored in reversed(matching):
            if stored.is_fresh():
                self.hits += 1
                return stored.response
        asked = self.kept.get(path, []) if self.all_tags else matching
        tags = {values(stored.response.fields, "ETag"): stored for stored in asked if values(stored.response.fields, "ETag")}
        conditions = [("If-None-Match", ", ".join(tags))] if tags and not any(values(fields, name) for name in CONDITIONS) else []
        response = self.ask(method, path, [*fields, *conditions])
        if response.status == 304 and conditions:
            selected = tags[values(response.fields, "ETag")]  # RFC 9111, section 4.3.4
            self.revalidated += 1
            merged = [(name, value) for name, value in selected.response.fields if not values(response.fields, name)] + response.fields
            selected.response.fields[:] = merged
            if method == "GET":
                self._store(path, fields, selected.response)
            return selected.response
        if method == "GET":
            self._store(path, fields, response)
        return response
