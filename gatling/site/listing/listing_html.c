/* listing_html.c - a listing for people: HTML that needs no script and loads nothing. With scripts the columns sort and
 * names are filtered. */
#include "gatling/base/owfat.h"
#include "gatling/base/utf8.h"
#include "gatling/http/path.h"
#include "gatling/site/listing/listing_form.h"

enum {
	PARENTS_LINKED = 32, /* folders above this one: a link to each costs as many bytes as it is far away */
	SIZE_ROOM = 32       /* bytes of a size as people read it */
};

/* Long names wrap at any character, so that the page never is wider than its window. */
static const char style[] =
	":root{color-scheme:light dark;--link:#0b57d0;--seen:#6b3fa0;--line:#8884;--hover:#8881}\n"
	"@media(prefers-color-scheme:dark){:root{--link:#8ab4f8;--seen:#c58af9}}\n"
	"body{font:1rem/1.4 system-ui,sans-serif;max-width:64rem;margin:0 auto;padding:1rem}\n"
	"h1{font-size:1.3rem;margin:.5rem 0 1rem;overflow-wrap:anywhere}\n"
	"h1 a{padding:.2em}\n"
	"a{color:var(--link);text-decoration:none}\n"
	"a:visited{color:var(--seen)}\n"
	"a:hover{text-decoration:underline}\n"
	".about{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center;justify-content:space-between;margin:0 0 "
	".5rem}\n"
	"input{font:inherit;padding:.2rem .6rem;border:1px solid var(--line);border-radius:.5rem;min-width:0;"
	"flex:0 1 16rem}\n"
	"input[hidden]{display:none}\n"
	"table{width:100%;border-collapse:collapse;table-layout:fixed}\n"
	"th{position:sticky;top:0;background:Canvas;box-shadow:0 1px var(--line);text-align:start;padding:.3rem .5rem}\n"
	"th:nth-child(2),td:nth-child(2){width:6rem;text-align:end;white-space:nowrap}\n"
	"th:nth-child(3),td:nth-child(3){width:10rem}\n"
	"td{padding:0 .5rem;border-bottom:1px solid var(--line);vertical-align:top;font-variant-numeric:tabular-nums}\n"
	"td+td{padding:.35rem .5rem}\n"
	"tr:hover td{background:var(--hover)}\n"
	"td a{display:block;padding:.35rem 0 .35rem 1.7em;overflow-wrap:anywhere;white-space:pre-wrap;"
	"unicode-bidi:plaintext;background:url(\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' "
	"viewBox='0 0 16 16'%3E%3Cpath fill='none' stroke='%23888' d='M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3'/%3E%3C/svg%3E\") "
	"no-repeat 0 .5em/1.1em}\n"
	".folders a{background-image:url(\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' "
	"viewBox='0 0 16 16'%3E%3Cpath fill='%23d9a429' d='M1 3h5l2 2h7v9H1z'/%3E%3C/svg%3E\")}\n"
	"button{font:inherit;font-weight:bold;color:inherit;background:none;border:0;padding:0;cursor:pointer;"
	"text-align:inherit}\n"
	"th{white-space:nowrap}\n"
	"button::after{content:\"\";display:inline-block;width:1em;text-align:end}\n"
	"th:nth-child(2) button{display:inline-flex;flex-direction:row-reverse}\n" /* the arrow before it: numbers end there
																				*/
	"[aria-sort=ascending] button::after{content:\"\\2191\"}\n"
	"[aria-sort=descending] button::after{content:\"\\2193\"}\n"
	/* on a phone size and date stand below the name */
	"@media(max-width:36rem){body{padding:.5rem}input{flex-grow:1}\n"
	"table,thead,tbody{display:block}\n"
	"thead{position:sticky;top:0;background:Canvas}\n"
	"th{position:static;box-shadow:none;background:none}\n"
	"tr{display:flex;flex-wrap:wrap;justify-content:space-between;border-bottom:1px solid var(--line)}\n"
	"tr[hidden]{display:none}\n"
	"tbody td{border:0}td:first-child{flex:0 0 100%;box-sizing:border-box}td a{padding-bottom:.1rem}\n"
	"th:nth-child(n+2),td:nth-child(n+2){width:auto;font-size:.9rem;padding-top:0}\n"
	"th:nth-child(n+2){padding-top:.4rem}td:nth-child(2){padding-left:2.2rem}}\n";

/* Rows leave the document while they are put in order: in their place each move would cost. */
static const char script[] =
	"(() => {\n"
	"const table = document.querySelector(\"table\"), filter = document.querySelector(\"input\");\n"
	"const keys = ({cells: [name, size, modified]}, place) => [place, parseInt(size.title), "
	"Date.parse(modified.firstChild?.dateTime)].map(key => Number.isNaN(key) ? -Infinity : key);\n"
	"let groups;\n"
	"const read = () => groups = groups || Array.from(table.querySelectorAll(\"tbody:not(.parent)\"), body => ({body,\n"
	"  entries: Array.from(body.rows, (row, place) => ({row, name: row.cells[0].textContent.toLowerCase(), "
	"keys: keys(row, place)}))}));\n"
	"const compare = column => (a, b) => a.keys[column] < b.keys[column] ? -1 : a.keys[column] > b.keys[column] ? 1 : "
	"0;\n"
	"const heads = [...table.tHead.rows[0].cells];\n"
	"heads.forEach((head, column) => {\n"
	"  const button = document.createElement(\"button\");\n"
	"  button.append(...head.childNodes);\n"
	"  head.append(button);\n"
	"  button.addEventListener(\"click\", () => {\n"
	"    const up = head.getAttribute(\"aria-sort\") != \"ascending\", order = compare(column);\n"
	"    heads.forEach(other => other.removeAttribute(\"aria-sort\"));\n"
	"    head.setAttribute(\"aria-sort\", up ? \"ascending\" : \"descending\");\n"
	"    for (const {body, entries} of read()) {\n"
	"      entries.sort(up ? order : (a, b) => order(b, a));\n"
	"      const rows = new DocumentFragment();\n"
	"      for (const {row} of entries) rows.append(row);\n"
	"      body.append(rows);\n"
	"    }\n"
	"  });\n"
	"});\n"
	"filter.hidden = false;\n"
	"filter.addEventListener(\"input\", () => {\n"
	"  const wanted = filter.value.toLowerCase();\n"
	"  for (const {entries} of read())\n"
	"    for (const {row, name} of entries) row.hidden = !name.includes(wanted);\n"
	"});\n"
	"})();\n";

/* --- text --- */

/* What HTML does not allow, or would not show. */
static bool is_unfit(uint32_t c) {
	return c == UTF8_INVALID || (c >= 0x80 && c < 0xA0) || (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
}

/* What changes the direction of the text around it, so that a name reads as another ("exe.jpg" for "gpj.exe"):
 * Unicode's property Bidi_Control (UAX #9); and what breaks a line. */
static bool is_misleading(uint32_t c) {
	return c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

/* Writes the first character of a text to out (4 bytes, or 6 for one byte), takes it off, and returns the bytes
 * written. Control characters but the tab become their pictures (U+2400 and on). */
static size_t put_character(struct slice *text, char *out) {
	uint32_t c;
	struct slice s = {.at = text->at, .length = utf8_character(*text, &c)};
	char picture[] = "\u2400";
	text->at += s.length;
	text->length -= s.length;
	if (c == '&') s = SLICE("&amp;");
	else if (c == '<') s = SLICE("&lt;");
	else if (c == '>') s = SLICE("&gt;");
	else if (c == '"') s = SLICE("&quot;");
	else if (c == '\'') s = SLICE("&#39;");
	else if (c == 0x7F) s = SLICE("\u2421");
	else if (is_unfit(c) || is_misleading(c)) s = SLICE("\uFFFD");
	else if (c < ' ' && c != '\t') {
		picture[2] = (char)((unsigned char)picture[2] + c);
		s = (struct slice){.at = picture, .length = sizeof picture - 1};
	}
	return (size_t)(form_put(out, s) - out);
}

static char *put_text(char *at, struct slice text) {
	while (text.length) at += put_character(&text, at);
	return at;
}

static void write_text(FILE *out, struct slice text) {
	char character[FORM_CHARACTER_MAX];
	while (text.length) fwrite(character, 1, put_character(&text, character), out);
}

/* Three digits at most, but of bytes: "1023 B", "1.2 KiB", "123 MiB". */
static char *put_size(char *at, uint64_t size) {
	static const char prefix[] = "KMGTPE";
	uint64_t unit = 1024;
	int i = 0;
	if (size < unit) {
		at += fmt_ulonglong(at, size);
		return form_put(at, SLICE(" B"));
	}
	for (; prefix[i + 1] && size / unit * 2 + size % unit * 2 / unit >= 2 * 1024 - 1; i++) unit *= 1024;
	uint64_t tenths = size / unit * 10 + (size % unit * 10 + unit / 2) / unit;
	if (tenths < 100) {
		at += fmt_ulonglong(at, tenths / 10);
		*at++ = '.';
		*at++ = (char)('0' + tenths % 10);
	} else {
		at += fmt_ulonglong(at, size / unit + (size % unit * 2 / unit));
	}
	*at++ = ' ';
	*at++ = prefix[i];
	return form_put(at, SLICE("iB"));
}

/* --- the page --- */

/* A folder of the path, so many above this one. */
static void write_step(FILE *out, struct slice name, size_t above) {
	bool linked = above > 0 && above <= PARENTS_LINKED;
	if (linked) fputs("<a href=\"", out);
	for (size_t i = 0; linked && i < above; i++) fputs("../", out);
	if (linked) fputs("\">", out);
	write_text(out, name);
	if (linked) fputs("</a>", out);
}

static void write_path(FILE *out, struct slice title) {
	size_t above = 0;
	for (size_t i = 0; i < title.length; i++) above += title.at[i] == '/';
	write_step(out, SLICE("/"), above);
	while (title.length) {
		const char *slash = memchr(title.at, '/', title.length);
		struct slice name = {.at = title.at, .length = slash ? (size_t)(slash - title.at) : title.length};
		size_t step = name.length + (slash ? 1 : 0);
		write_step(out, name, slash ? --above : 0);
		if (slash) fputs("/", out);
		title.at += step;
		title.length -= step;
	}
}

static void write_count(FILE *out, size_t count, const char *one, const char *more) {
	fprintf(out, "%zu %s", count, count == 1 ? one : more);
}

static void write_about(FILE *out, const struct summary *s) {
	char size[SIZE_ROOM], *end = put_size(size, s->bytes);
	fputs("<div class=about><span>", out);
	write_count(out, s->folders, "folder", "folders");
	fputs(", ", out);
	write_count(out, s->files, "file", "files");
	if (s->files) fprintf(out, ", %.*s", (int)(end - size), size);
	if (s->more) fputs("; there are more, which are not shown", out);
	if (s->closed) {
		fputs("; ", out);
		write_count(out, s->closed, "entry is", "entries are");
		fputs(" not shown: not readable by everyone", out);
	}
	fputs("</span><input type=search placeholder=Filter aria-label=\"Filter by name\" autocomplete=off hidden></div>\n",
		  out);
}

static void write_head(FILE *out, struct slice title, const struct summary *summary) {
	fputs("<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
		  "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n"
		  "<link rel=icon href=\"data:,\">\n<title>/",
		  out);
	write_text(out, title);
	fprintf(out, "</title>\n<style>\n%s</style>\n<h1>", style);
	write_path(out, title);
	fputs("</h1>\n", out);
	write_about(out, summary);
	fputs("<table>\n<thead><tr><th scope=col aria-sort=ascending>Name<th scope=col>Size<th scope=col>Modified (UTC)\n",
		  out);
	if (title.length) fputs("<tbody class=\"folders parent\"><tr><td><a href=\"../\">../</a><td><td>\n", out);
}

static size_t row(const struct listing_entry *entry, const struct listing_entry *previous, char *out) {
	struct slice name = form_name(entry);
	bool folder = entry->kind == ENTRY_DIRECTORY;
	char *at = out;
	if (!previous || (previous->kind == ENTRY_DIRECTORY) != folder)
		at = form_put(at, folder ? SLICE("<tbody class=folders>\n") : SLICE("<tbody>\n"));
	at = form_put(at, SLICE("<tr><td><a href=\"./")); /* or a name with a colon would be read as a scheme */
	at += path_encode(name, at);
	at = form_put(at, folder ? SLICE("/\">") : SLICE("\">"));
	at = put_text(at, name);
	at = form_put(at, folder ? SLICE("/</a><td>") : SLICE("</a><td"));
	if (entry->kind == ENTRY_FILE) {
		at = form_put(at, SLICE(" title=\""));
		at += fmt_ulonglong(at, entry->size);
		at = form_put(at, entry->size == 1 ? SLICE(" byte\"") : SLICE(" bytes\""));
	}
	if (!folder) *at++ = '>';
	if (entry->kind == ENTRY_FILE) at = put_size(at, entry->size);
	at = form_put(at, SLICE("<td>"));
	char date[FORM_DATE_LENGTH];
	size_t length = form_date(entry->modified, date);
	if (length) {
		at = form_put(at, SLICE("<time datetime="));
		at = form_put(at, (struct slice){.at = date, .length = length});
		*at++ = '>';
		at = form_put(at, (struct slice){.at = date, .length = sizeof "2006-01-02" - 1});
		*at++ = ' ';
		at = form_put(at, (struct slice){.at = date + sizeof "2006-01-02", .length = sizeof "15:04" - 1});
		at = form_put(at, SLICE("</time>"));
	}
	*at++ = '\n';
	return (size_t)(at - out);
}

static void write_foot(FILE *out, const struct summary *summary) {
	fputs("</table>\n", out);
	if (!summary->folders && !summary->files) fputs("<p>Nothing is here.\n", out);
	fprintf(out, "<script>\n%s</script>\n", script);
}

const struct form form_html = {.write_head = write_head, .row = row, .write_foot = write_foot};
