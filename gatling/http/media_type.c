/* media_type.c - see media_type.h. */
#include "gatling/http/media_type.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/text.h"
#include "gatling/http/chars.h"

enum { EXTENSION_MAX = 64 }; /* with a NUL; Debian's mime.types has one of 30 */

#define UTF8 "; charset=utf-8"

/* sorted by extension */
static const struct mime {
	const char *extension, *type;
} built_in[] = {
	{"3gp", "video/3gpp"},
	{"7z", "application/x-7z-compressed"},
	{"aac", "audio/aac"},
	{"ai", "application/postscript"},
	{"apk", "application/vnd.android.package-archive"},
	{"apng", "image/apng"},
	{"asc", "text/plain" UTF8},
	{"atom", "application/atom+xml"},
	{"avi", "video/x-msvideo"},
	{"avif", "image/avif"},
	{"bin", "application/octet-stream"},
	{"bmp", "image/bmp"},
	{"br", "application/octet-stream"},
	{"bz2", "application/x-bzip2"},
	{"c", "text/plain" UTF8},
	{"cjs", "text/javascript" UTF8},
	{"conf", "text/plain" UTF8},
	{"cpp", "text/plain" UTF8},
	{"css", "text/css" UTF8},
	{"csv", "text/csv" UTF8},
	{"deb", "application/vnd.debian.binary-package"},
	{"diff", "text/plain" UTF8},
	{"djvu", "image/vnd.djvu"},
	{"dmg", "application/octet-stream"},
	{"doc", "application/msword"},
	{"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{"eot", "application/vnd.ms-fontobject"},
	{"eps", "application/postscript"},
	{"epub", "application/epub+zip"},
	{"fits", "application/fits"},
	{"flac", "audio/flac"},
	{"flv", "video/x-flv"},
	{"geojson", "application/geo+json"},
	{"gif", "image/gif"},
	{"gz", "application/gzip"},
	{"h", "text/plain" UTF8},
	{"heic", "image/heic"},
	{"htm", "text/html" UTF8},
	{"html", "text/html" UTF8},
	{"ico", "image/vnd.microsoft.icon"},
	{"ics", "text/calendar" UTF8},
	{"iso", "application/octet-stream"},
	{"jar", "application/java-archive"},
	{"jpeg", "image/jpeg"},
	{"jpg", "image/jpeg"},
	{"js", "text/javascript" UTF8},
	{"json", "application/json"},
	{"jsonld", "application/ld+json"},
	{"jxl", "image/jxl"},
	{"log", "text/plain" UTF8},
	{"m3u8", "application/vnd.apple.mpegurl"},
	{"m4a", "audio/mp4"},
	{"m4v", "video/mp4"},
	{"map", "application/json"},
	{"md", "text/plain" UTF8}, /* some browsers save text/markdown (RFC 7763) instead of showing it */
	{"mid", "audio/midi"},
	{"mjs", "text/javascript" UTF8},
	{"mkv", "video/matroska"},
	{"mov", "video/quicktime"},
	{"mp3", "audio/mpeg"},
	{"mp4", "video/mp4"},
	{"mpd", "application/dash+xml"},
	{"mpeg", "video/mpeg"},
	{"mpg", "video/mpeg"},
	{"odp", "application/vnd.oasis.opendocument.presentation"},
	{"ods", "application/vnd.oasis.opendocument.spreadsheet"},
	{"odt", "application/vnd.oasis.opendocument.text"},
	{"oga", "audio/ogg"},
	{"ogg", "audio/ogg"},
	{"ogv", "video/ogg"},
	{"opus", "audio/ogg"},
	{"otf", "font/otf"},
	{"patch", "text/plain" UTF8},
	{"pdf", "application/pdf"},
	{"pem", "application/x-pem-file"},
	{"png", "image/png"},
	{"ppt", "application/vnd.ms-powerpoint"},
	{"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	{"ps", "application/postscript"},
	{"py", "text/plain" UTF8},
	{"rar", "application/vnd.rar"},
	{"rpm", "application/x-rpm"},
	{"rss", "application/rss+xml"},
	{"rst", "text/plain" UTF8},
	{"rtf", "application/rtf"},
	{"run", "application/octet-stream"}, /* a script followed by a program */
	{"sh", "text/plain" UTF8},
	{"stl", "model/stl"},
	{"svg", "image/svg+xml"},
	{"svgz", "image/svg+xml"},
	{"tar", "application/x-tar"},
	{"tgz", "application/gzip"},
	{"tif", "image/tiff"},
	{"tiff", "image/tiff"},
	{"torrent", "application/x-bittorrent"},
	{"ts", "video/mp2t"},
	{"tsv", "text/tab-separated-values" UTF8},
	{"ttf", "font/ttf"},
	{"txt", "text/plain" UTF8},
	{"vcf", "text/vcard" UTF8},
	{"vtt", "text/vtt" UTF8},
	{"wasm", "application/wasm"},
	{"wav", "audio/wav"},
	{"weba", "audio/webm"},
	{"webm", "video/webm"},
	{"webmanifest", "application/manifest+json"},
	{"webp", "image/webp"},
	{"woff", "font/woff"},
	{"woff2", "font/woff2"},
	{"xht", "application/xhtml+xml"},
	{"xhtml", "application/xhtml+xml"},
	{"xls", "application/vnd.ms-excel"},
	{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{"xml", "text/xml" UTF8},
	{"xz", "application/x-xz"},
	{"yaml", "application/yaml"},
	{"yml", "application/yaml"},
	{"zip", "application/zip"},
	{"zst", "application/zstd"},
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
	return slash && slash != type && slash[1] && length <= MIME_TYPE_MAX;
}

/* Neither string is freed: types last as long as the process. */
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

/* Reads a line "type extension..."; returns false if it is malformed. */
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

int mime_load(const char *file) {
	FILE *in = fopen(file, "re");
	char *line = NULL;
	size_t room = 0, total = 0;
	int number = 0;
	bool valid = true;
	if (!in) return -1;
	for (ssize_t n; valid && total <= MIME_FILE_MAX && (n = getline(&line, &room, in)) != -1; total += (size_t)n) {
		number++;
		valid = read_line(line);
	}
	bool failed = ferror(in);
	int error = failed ? errno : EFBIG;
	fclose(in);
	free(line);
	if (added.count) qsort(added.entry, added.count, sizeof *added.entry, by_entry);
	if (!valid) return number;
	errno = error;
	return failed || total > MIME_FILE_MAX ? -1 : 0;
}

/* --- finding --- */

const char *mime_type(struct slice path) {
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
	if (!m) m = bsearch(extension, built_in, sizeof built_in / sizeof *built_in, sizeof *built_in, by_extension);
	return m ? m->type : NULL;
}
