/* owner_fields.c - see owner_fields.h. */
#include "gatling/exchange/owner_fields.h"

#include "gatling/base/slice.h"

/* Takes a line off the front. Returns it with its CRLF, and its name. */
static struct slice next_line(struct slice *lines, struct slice *name) {
	const struct slice line = slice_first(*lines, slice_until(*lines, '\n') + 1);
	*name = slice_first(line, slice_until(line, ':'));
	slice_drop(lines, line.length);
	return line;
}

static bool removes(struct slice line, struct slice name) { return line.length == name.length + sizeof ":\r\n" - 1; }

/* Returns whether the fields that are added remove that one. */
static bool is_removed(struct slice added, struct slice name) {
	for (struct slice other; added.length;) {
		const struct slice line = next_line(&added, &other);
		if (removes(line, other) && slice_equal_nocase(other, name)) return true;
	}
	return false;
}

static bool has(struct slice lines, struct slice name) {
	for (struct slice other; lines.length;) {
		(void)next_line(&lines, &other);
		if (slice_equal_nocase(other, name)) return true;
	}
	return false;
}

size_t owner_fields_apply(int status, struct slice lines, struct slice added, char *out) {
	static const struct slice several[] = {SLICE("Link"), SLICE("Set-Cookie"), SLICE("Vary")};
	const bool cached = status < 300 || status == 304;
	char *at = out;
	struct slice name;
	for (struct slice rest = lines; rest.length;) {
		const struct slice line = next_line(&rest, &name);
		if (!is_removed(added, name)) at = text_copy(at, line);
	}
	for (struct slice rest = added; rest.length;) {
		const struct slice line = next_line(&rest, &name);
		if (removes(line, name) || (!cached && slice_equal_nocase(name, SLICE("Cache-Control")))) continue;
		if (!has(lines, name) || slice_is_one_of_nocase(name, several, sizeof several / sizeof *several))
			at = text_copy(at, line);
	}
	return (size_t)(at - out);
}
