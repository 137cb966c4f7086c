/* listing_html.c - a listing in HTML, which loads nothing else. It works without scripts; with them, columns can be
 * sorted and names filtered. */
#include "gatling/base/utf8.h"
#include "gatling/site/listing/listing_writer.h"

enum {
	PARENTS_LINKED = 32, /* folders above this one that are linked: the length of a link grows with the distance */
	SIZE_MAX_LENGTH = 32 /* bytes of a size as people read it */
};

/* Long names wrap at any character, so that the page is never wider than its window. */
static const char style[] =
	":root{color-scheme:light dark;--link:#0b57d0;--seen:#6b3fa0;--line:#8884;--hover:#8881}\n"
	"@media(prefers-color-scheme:dark){:root{--link:#8ab4f8;--seen:#c58af9}}\n"
	"html{background:Canvas;color:CanvasText}\n"
	"body{font:1rem/1.4 system-ui,sans-serif;max-width:64rem;margin:0 auto;padding:1rem}\n"
	"h1{font-size:1.3rem;margin:.5rem 0 1rem;overflow-wrap:anywhere}\n"
	"a{color:var(--link);text-decoration:none}\n"
	"h1 a{padding:.2em;text-decoration:underline}\n"
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
	/* numbers end at the right: the arrow stands to the left of them */
	"th:nth-child(2) button{display:inline-flex;flex-direction:row-reverse;align-items:baseline}\n"
	"[aria-sort=ascending] button::after{content:\"\\2191\"}\n"
	"[aria-sort=descending] button::after{content:\"\\2193\"}\n"
	/* on a phone, size and date stand below the name */
	"@media(max-width:36rem){body{padding:.5rem}input{flex-grow:1}\n"
	"table,thead,tbody{display:block}\n"
	"thead{position:sticky;top:0;background:Canvas}\n"
	"th{position:static;box-shadow:none;background:none}\n"
	"tr{display:flex;flex-wrap:wrap;justify-content:space-between;border-bottom:1px solid var(--line)}\n"
	"tr[hidden]{display:none}\n"
	"tbody td{border:0}td:first-child{flex:0 0 100%;box-sizing:border-box}td a{padding-bottom:.1rem}\n"
	"th:nth-child(n+2),td:nth-child(n+2){width:auto;font-size:.9rem;padding-top:0}\n"
	"th:nth-child(n+2){padding-top:.4rem}td:nth-child(2){padding-left:2.2rem}}\n";

/* Rows are sorted outside the document: moving them inside would cost a layout each time. */
static const char script[] =
	"(() => {\n"
	"const [table, filter, found] = [\"table\", \"input\", \"output\"].map(name => document.querySelector(name));\n"
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
	"  let count = 0;\n"
	"  for (const {entries} of read())\n"
	"    for (const {row, name} of entries) count += !(row.hidden = !name.includes(wanted));\n"
	"  found.textContent = wanted && `; ${count} found`;\n"
	"});\n"
	"})();\n";

/* --- text --- */

/* Returns whether HTML does not allow the character, or browsers show nothing for it. */
static bool is_unfit(uint32_t c) {
	return c == UTF8_INVALID || (c >= 0x80 && c < 0xA0) || (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
}

/* Returns whether the character changes the direction of the text around it, so that "gpj.exe" reads as "exe.jpg"
 * (Unicode's property Bidi_Control, UAX #9), or breaks a line. */
static bool is_misleading(uint32_t c) {
	return c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

/* Takes a character off the front of the text and appends it. Control characters except the tab become their pictures
 * (U+2400 and on). */
static void add_character(struct text *out, struct slice *text) {
	uint32_t c;
	struct slice s = {.at = text->at, .length = utf8_character(*text, &c)};
	char picture[] = "\u2400";
	slice_drop(text, s.length);
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
	text_add(out, s);
}

static void write_text(FILE *out, struct slice text) {
	char room[LISTING_CHARACTER_MAX];
	while (text.length) {
		struct text character = text_begin(room, sizeof room);
		add_character(&character, &text);
		fwrite(room, 1, text_written(&character).length, out);
	}
}

/* Appends a size with at most three digits, or four of bytes: "1023 B", "1.2 KiB", "123 MiB". */
static void add_size(struct text *out, uint64_t size) {
	static const char prefix[] = "KMGTPE";
	uint64_t unit = 1024;
	int i = 0;
	if (size < unit) {
		text_add_number(out, size);
		text_add(out, SLICE(" B"));
		return;
	}
	for (; prefix[i + 1] && size / unit * 2 + size % unit * 2 / unit >= 2 * 1024 - 1; i++) unit *= 1024;
	uint64_t tenths = size / unit * 10 + (size % unit * 10 + unit / 2) / unit;
	text_add_number(out, tenths < 100 ? tenths / 10 : size / unit + size % unit * 2 / unit);
	if (tenths < 100) {
		text_add_char(out, '.');
		text_add_number(out, tenths % 10);
	}
	text_add_char(out, ' ');
	text_add_char(out, prefix[i]);
	text_add(out, SLICE("iB"));
}

/* --- the page --- */

/* Writes a folder of the path that is `above` levels above this one. */
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
		size_t length = slice_until(title, '/');
		bool last = length == title.length;
		write_step(out, slice_first(title, length), last ? 0 : --above);
		if (!last) fputs("/", out);
		slice_drop(&title, length + !last);
	}
}

static void write_count(FILE *out, size_t count, const char *one, const char *more) {
	fprintf(out, "%zu %s", count, count == 1 ? one : more);
}

static void write_summary(FILE *out, const struct listing_summary *s) {
	char room[SIZE_MAX_LENGTH];
	struct text size = text_begin(room, sizeof room);
	add_size(&size, s->bytes);
	fputs("<div class=about><span>", out);
	write_count(out, s->folders, "folder", "folders");
	fputs(", ", out);
	write_count(out, s->files, "file", "files");
	if (s->files) fprintf(out, ", %.*s", (int)text_written(&size).length, room);
	if (s->more) fputs("; there are more, which are not shown", out);
	if (s->unreadable) {
		fputs("; ", out);
		write_count(out, s->unreadable, "entry is", "entries are");
		fputs(" not shown: not readable by everyone", out);
	}
	/* the number of names that the filter leaves, which screen readers announce */
	fputs("<output></output></span><input type=search placeholder=Filter aria-label=\"Filter by name\" "
		  "autocomplete=off hidden></div>\n",
		  out);
}

static void write_head(FILE *out, struct slice title, const struct listing_summary *summary) {
	fputs("<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
		  "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n"
		  "<link rel=icon href=\"data:,\">\n<title>/",
		  out);
	write_text(out, title);
	fprintf(out, "</title>\n<style>\n%s</style>\n<main>\n<h1>", style);
	write_path(out, title);
	fputs("</h1>\n", out);
	write_summary(out, summary);
	fputs("<table>\n<thead><tr><th scope=col aria-sort=ascending>Name<th scope=col>Size<th scope=col>Modified (UTC)\n",
		  out);
	if (title.length) fputs("<tbody class=\"folders parent\"><tr><td><a href=\"../\">../</a><td><td>\n", out);
}

static void add_row(struct text *out, const struct listing_entry *entry, const struct listing_entry *previous) {
	struct slice name = slice_of(entry->name);
	bool folder = entry->kind == LISTING_DIRECTORY;
	if (!previous || (previous->kind == LISTING_DIRECTORY) != folder)
		text_add(out, folder ? SLICE("<tbody class=folders>\n") : SLICE("<tbody>\n"));
	/* without "./" a name with a colon would be read as a scheme */
	text_add(out, SLICE("<tr><td><a href=\"./"));
	listing_add_link(out, name);
	text_add(out, folder ? SLICE("/\">") : SLICE("\">"));
	for (struct slice rest = name; rest.length;) add_character(out, &rest);
	text_add(out, folder ? SLICE("/</a><td>") : SLICE("</a><td"));
	if (entry->kind == LISTING_FILE) {
		text_add(out, SLICE(" title=\""));
		text_add_number(out, entry->size);
		text_add(out, entry->size == 1 ? SLICE(" byte\"") : SLICE(" bytes\""));
	}
	if (!folder) text_add_char(out, '>');
	if (entry->kind == LISTING_FILE) add_size(out, entry->size);
	text_add(out, SLICE("<td>"));
	char room[LISTING_DATE_LENGTH];
	struct slice date = listing_date(entry->modified, room);
	if (date.length) {
		text_add(out, SLICE("<time datetime="));
		text_add(out, date);
		text_add_char(out, '>');
		room[sizeof "2006-01-02" - 1] = ' ';
		text_add(out, slice_first(date, sizeof "2006-01-02 15:04" - 1));
		text_add(out, SLICE("</time>"));
	}
	text_add_char(out, '\n');
}

static void write_foot(FILE *out, const struct listing_summary *summary) {
	fputs("</table>\n", out);
	if (!summary->folders && !summary->files) fputs("<p>Nothing is here.\n", out);
	fprintf(out, "</main>\n<script>\n%s</script>\n", script);
}

const struct listing_writer listing_html = {.write_head = write_head, .add_row = add_row, .write_foot = write_foot};
