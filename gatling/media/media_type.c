/* media_type.c - see media_type.h. */
#include "gatling/media/media_type.h"

#include <fcntl.h>
#include <stdlib.h>

#include "gatling/base/file_read.h"
#include "gatling/base/lines.h"
#include "gatling/base/slice.h"
#include "gatling/http/chars.h"
#include "gatling/media/media_type_table.h"

enum { EXTENSION_MAX = 64 }; /* bytes with the NUL; the longest extension in Debian's mime.types has 30 */

struct mime {
	const char *extension, *type;
};

static struct {
	struct mime *entry; /* sorted */
	size_t count;
} added;

static int by_extension(const void *key, const void *entry) {
	return strcmp(key, ((const struct mime *)entry)->extension);
}

static int by_entry(const void *a, const void *b) { return by_extension(((const struct mime *)a)->extension, b); }

static int by_table_extension(const void *key, const void *entry) {
	return strcmp(key, table_extensions + ((const struct table_entry *)entry)->extension);
}

/* --- reading mime.types --- */

static bool is_type(struct slice type) {
	const size_t main = chars_span(type, CHAR_TOKEN);
	if (!main || main == type.length || type.at[main] != '/' || type.length > MEDIA_TYPE_MAX) return false;
	const struct slice sub = slice_rest(type, main + 1);
	return sub.length && chars_span(sub, CHAR_TOKEN) == sub.length;
}

/* Adds a type. The strings that it allocates are never freed: types last as long as the process. Returns false if
 * memory runs out. */
static bool add(struct slice extension, struct slice type) {
	struct mime *grown = realloc(added.entry, (added.count + 1) * sizeof *grown);
	char *name = grown ? malloc(extension.length + 1 + type.length + 1) : NULL;
	if (grown) added.entry = grown;
	if (!name) return false;
	for (size_t i = 0; i < extension.length; i++) name[i] = text_lower(extension.at[i]);
	name[extension.length] = '\0';
	char *copy = name + extension.length + 1;
	*text_copy(copy, type) = '\0';
	added.entry[added.count++] = (struct mime){.extension = name, .type = copy};
	return true;
}

/* Parses a line "type extension...". Returns false if it is malformed, or memory runs out. */
static bool read_line(struct slice line) {
	struct slice type, extension;
	line.length = slice_until(line, '#');
	if (!lines_next_word(&line, &type) || !is_type(type)) return false;
	while (lines_next_word(&line, &extension))
		if (extension.length >= EXTENSION_MAX || !add(extension, type)) return false;
	return true;
}

int media_types_load(const char *file) {
	struct stat st;
	char *text = file_load(open(file, O_RDONLY | O_CLOEXEC), LINES_TEXT_MAX, &st);
	if (!text) return -1;
	struct lines lines = lines_of((struct slice){.at = text, .length = (size_t)st.st_size});
	bool valid = true;
	for (struct slice line; valid && lines_next_entry(&lines, &line);) valid = read_line(line);
	free(text);
	if (added.count) qsort(added.entry, added.count, sizeof *added.entry, by_entry);
	return valid ? 0 : (int)lines.number;
}

/* --- finding --- */

const char *media_type_of(struct slice path) {
	char extension[EXTENSION_MAX];
	size_t n = 0;
	while (n < path.length && n < EXTENSION_MAX && path.at[path.length - 1 - n] != '.') {
		if (path.at[path.length - 1 - n] == '/') return NULL;
		n++;
	}
	if (n == path.length || n == EXTENSION_MAX) return NULL;
	for (size_t i = 0; i < n; i++) extension[i] = text_lower(path.at[path.length - n + i]);
	extension[n] = '\0';
	const struct mime *m =
		added.count ? bsearch(extension, added.entry, added.count, sizeof *added.entry, by_extension) : NULL;
	if (m) return m->type;
	const struct table_entry *t =
		bsearch(extension, table, sizeof table / sizeof *table, sizeof *table, by_table_extension);
	return t ? table_types + t->type : NULL;
}
