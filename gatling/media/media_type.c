/* media_type.c - see media_type.h. */
#include "gatling/media/media_type.h"

#include <fcntl.h>
#include <stdlib.h>

#include "gatling/base/file_read.h"
#include "gatling/base/text.h"
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

static bool is_type(const char *type) {
	size_t length = strlen(type);
	const char *slash = strchr(type, '/');
	for (size_t i = 0; i < length; i++)
		if (!char_is(type[i], CHAR_TOKEN) && type + i != slash) return false;
	return slash && slash != type && slash[1] && length <= MEDIA_TYPE_MAX;
}

/* Adds a type. The strings that it allocates are never freed: types last as long as the process. Returns false if
 * memory runs out. */
static bool add(const char *extension, const char *type) {
	size_t length = strlen(extension) + 1;
	struct mime *grown = realloc(added.entry, (added.count + 1) * sizeof *grown);
	char *name = grown ? malloc(length + strlen(type) + 1) : NULL;
	if (grown) added.entry = grown;
	if (!name) return false;
	for (size_t i = 0; i < length; i++) name[i] = text_lower(extension[i]);
	*text_copy_string(name + length, type) = '\0';
	added.entry[added.count++] = (struct mime){.extension = name, .type = name + length};
	return true;
}

/* Parses a line "type extension...". Returns false if it is malformed, or memory runs out. */
static bool read_line(char *line) {
	static const char blanks[] = " \t\r\n";
	char *rest = NULL;
	line[strcspn(line, "#")] = '\0';
	const char *type = strtok_r(line, blanks, &rest), *extension = strtok_r(NULL, blanks, &rest);
	if (!type) return true;
	if (!is_type(type)) return false;
	for (; extension; extension = strtok_r(NULL, blanks, &rest))
		if (strlen(extension) >= EXTENSION_MAX || !add(extension, type)) return false;
	return true;
}

int media_types_load(const char *file) {
	struct stat st;
	char *text = file_load(open(file, O_RDONLY | O_CLOEXEC), MEDIA_TYPES_FILE_MAX, &st);
	int number = 0;
	bool valid = true;
	if (!text) return -1;
	for (char *line = text, *end; valid && line < text + st.st_size; line = end + 1, number++) {
		end = line + strcspn(line, "\n");
		*end = '\0';
		valid = read_line(line);
	}
	free(text);
	if (added.count) qsort(added.entry, added.count, sizeof *added.entry, by_entry);
	return valid ? 0 : number;
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
