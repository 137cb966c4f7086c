/* media_type.c - see media_type.h. */
#include "gatling/http/media_type.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/file_read.h"
#include "gatling/base/text.h"
#include "gatling/http/chars.h"

enum { EXTENSION_MAX = 64 }; /* bytes with the NUL; the longest extension in Debian's mime.types has 30 */

#define UTF8 "; charset=utf-8"

/* sorted by type */
static const struct built_in {
	const char *type, *extension[14]; /* with a NULL at the end */
} built_in[] = {
	{"application/atom+xml", {"atom"}},
	{"application/dash+xml", {"mpd"}},
	{"application/epub+zip", {"epub"}},
	{"application/fits", {"fits"}},
	{"application/geo+json", {"geojson"}},
	{"application/gzip", {"gz", "tgz"}},
	{"application/java-archive", {"jar"}},
	{"application/json", {"json", "map"}},
	{"application/ld+json", {"jsonld"}},
	{"application/manifest+json", {"webmanifest"}},
	{"application/msword", {"doc"}},
	{"application/octet-stream", {"bin", "br", "dmg", "iso", "run"}}, /* .run is a script followed by a program */
	{"application/pdf", {"pdf"}},
	{"application/postscript", {"ai", "eps", "ps"}},
	{"application/rss+xml", {"rss"}},
	{"application/rtf", {"rtf"}},
	{"application/vnd.android.package-archive", {"apk"}},
	{"application/vnd.apple.mpegurl", {"m3u8"}},
	{"application/vnd.debian.binary-package", {"deb"}},
	{"application/vnd.ms-excel", {"xls"}},
	{"application/vnd.ms-fontobject", {"eot"}},
	{"application/vnd.ms-powerpoint", {"ppt"}},
	{"application/vnd.oasis.opendocument.presentation", {"odp"}},
	{"application/vnd.oasis.opendocument.spreadsheet", {"ods"}},
	{"application/vnd.oasis.opendocument.text", {"odt"}},
	{"application/vnd.openxmlformats-officedocument.presentationml.presentation", {"pptx"}},
	{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", {"xlsx"}},
	{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", {"docx"}},
	{"application/vnd.rar", {"rar"}},
	{"application/wasm", {"wasm"}},
	{"application/x-7z-compressed", {"7z"}},
	{"application/x-bittorrent", {"torrent"}},
	{"application/x-bzip2", {"bz2"}},
	{"application/x-pem-file", {"pem"}},
	{"application/x-rpm", {"rpm"}},
	{"application/x-tar", {"tar"}},
	{"application/x-xz", {"xz"}},
	{"application/xhtml+xml", {"xht", "xhtml"}},
	{"application/yaml", {"yaml", "yml"}},
	{"application/zip", {"zip"}},
	{"application/zstd", {"zst"}},
	{"audio/aac", {"aac"}},
	{"audio/flac", {"flac"}},
	{"audio/midi", {"mid"}},
	{"audio/mp4", {"m4a"}},
	{"audio/mpeg", {"mp3"}},
	{"audio/ogg", {"oga", "ogg", "opus"}},
	{"audio/wav", {"wav"}},
	{"audio/webm", {"weba"}},
	{"font/otf", {"otf"}},
	{"font/ttf", {"ttf"}},
	{"font/woff", {"woff"}},
	{"font/woff2", {"woff2"}},
	{"image/apng", {"apng"}},
	{"image/avif", {"avif"}},
	{"image/bmp", {"bmp"}},
	{"image/gif", {"gif"}},
	{"image/heic", {"heic"}},
	{"image/jpeg", {"jpeg", "jpg"}},
	{"image/jxl", {"jxl"}},
	{"image/png", {"png"}},
	{"image/svg+xml", {"svg", "svgz"}},
	{"image/tiff", {"tif", "tiff"}},
	{"image/vnd.djvu", {"djvu"}},
	{"image/vnd.microsoft.icon", {"ico"}},
	{"image/webp", {"webp"}},
	{"model/stl", {"stl"}},
	{"text/calendar" UTF8, {"ics"}},
	{"text/css" UTF8, {"css"}},
	{"text/csv" UTF8, {"csv"}},
	{"text/html" UTF8, {"htm", "html"}},
	{"text/javascript" UTF8, {"cjs", "js", "mjs"}},
	/* md: some browsers save text/markdown (RFC 7763) instead of showing it */
	{"text/plain" UTF8, {"asc", "c", "conf", "cpp", "diff", "h", "log", "md", "patch", "py", "rst", "sh", "txt"}},
	{"text/tab-separated-values" UTF8, {"tsv"}},
	{"text/vcard" UTF8, {"vcf"}},
	{"text/vtt" UTF8, {"vtt"}},
	{"text/xml" UTF8, {"xml"}},
	{"video/3gpp", {"3gp"}},
	{"video/matroska", {"mkv"}},
	{"video/mp2t", {"ts"}},
	{"video/mp4", {"m4v", "mp4"}},
	{"video/mpeg", {"mpeg", "mpg"}},
	{"video/ogg", {"ogv"}},
	{"video/quicktime", {"mov"}},
	{"video/webm", {"webm"}},
	{"video/x-flv", {"flv"}},
	{"video/x-msvideo", {"avi"}},
};

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

/* --- reading mime.types --- */

static bool is_type(const char *type) {
	size_t length = strlen(type);
	const char *slash = strchr(type, '/');
	for (size_t i = 0; i < length; i++)
		if (!char_is(type[i], CHAR_TOKEN) && type + i != slash) return false;
	return slash && slash != type && slash[1] && length + strlen(UTF8) <= MEDIA_TYPE_MAX;
}

/* Adds a type. The strings that it allocates are never freed: types last as long as the process. Returns false if
 * memory runs out. */
static bool add(const char *extension, const char *type) {
	bool text = slice_starts(slice_of(type), SLICE("text/"));
	size_t length = strlen(extension) + 1;
	struct mime *grown = realloc(added.entry, (added.count + 1) * sizeof *grown);
	char *name = grown ? malloc(length + strlen(type) + sizeof UTF8) : NULL;
	if (grown) added.entry = grown;
	if (!name) return false;
	for (size_t i = 0; i < length; i++) name[i] = text_lower(extension[i]);
	sprintf(name + length, "%s%s", type, text ? UTF8 : "");
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
	for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
		for (const char *const *one = built_in[i].extension; *one; one++)
			if (strcmp(*one, extension) == 0) return built_in[i].type;
	return NULL;
}
