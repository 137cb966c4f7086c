/* inputs.c - see inputs.h. */
#include "bench/httpbench/load/inputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench/usage.h"

enum { HEADS_MAX = 1024, READ_PART = 65536 };

char *input_file(const char *option, const char *path, size_t most, size_t *length) {
	char *bytes = NULL, part[READ_PART];
	size_t n, sum = 0;
	FILE *in = fopen(path, "r"), *all = open_memstream(&bytes, length);
	if (!in) usage_refuse("%s: cannot read '%s': %s", option, path, strerror(errno));
	if (!all) usage_refuse("%s: no memory for %s", option, path);
	while ((n = fread(part, 1, sizeof part, in)) > 0) {
		if ((sum += n) > most) usage_refuse("%s: %s has more than %zu bytes", option, path, most);
		(void)fwrite(part, 1, n, all);
	}
	if (ferror(in)) usage_refuse("%s: cannot read %s: %s", option, path, strerror(errno));
	fclose(in);
	if (fclose(all) != 0) usage_refuse("%s: no memory for %s", option, path);
	return bytes;
}

void input_urls(struct input_urls *u, const char *path) {
	size_t length;
	char *line = u->text = input_file("--urls", path, INPUT_FILE_MAX, &length), *end = line + length;
	unsigned number = 1;
	u->url = calloc(INPUT_URLS_MAX, sizeof *u->url);
	u->line = calloc(INPUT_URLS_MAX, sizeof *u->line);
	if (!u->url || !u->line) usage_refuse("no memory for the URLs of %s", path);
	*end = '\0';
	for (char *next; line < end; line = next) {
		const unsigned here = number;
		next = line + strcspn(line, "\r\n");
		number += *next == '\n';
		if (next < end) *next++ = '\0';
		if (!*line || *line == '#') continue;
		if (u->count == INPUT_URLS_MAX) usage_refuse("--urls: %s has more than %d URLs", path, INPUT_URLS_MAX);
		u->line[u->count] = here;
		u->url[u->count++] = line;
	}
	if (!u->count) usage_refuse("--urls: %s has no URL", path);
}

bool input_is_header(const char *line) {
	const size_t length = strcspn(line, ": \t");
	return length && line[length] == ':';
}

bool input_is_field(const char *line, const char *name) {
	const size_t length = strlen(name);
	return strncasecmp(line, name, length) == 0 && line[length] == ':';
}

void input_check_header(const char *option, const char *line) {
	if (input_is_field(line, "Connection") && strcasestr(line, "close"))
		usage_refuse("%s '%s': use -k 1 instead", option, line);
}

void input_heads(struct plan *p, const char *path) {
	size_t length;
	char *text = input_file("--heads", path, INPUT_FILE_MAX, &length), *rest = text;
	FILE *out = NULL;
	p->fields = calloc(HEADS_MAX, sizeof *p->fields);
	if (strlen(text) != length) usage_refuse("--heads: %s is no text", path);
	for (unsigned number = 1; rest; number++) {
		char *line = strsep(&rest, "\n");
		line[strcspn(line, "\r")] = '\0';
		if (*line) {
			if (!input_is_header(line)) usage_refuse("%s, line %u: '%s' is not 'Name: value'", path, number, line);
			input_check_header("--heads", line);
			if (!out && p->heads == HEADS_MAX) usage_refuse("--heads: %s has more than %d heads", path, HEADS_MAX);
			if (!out && p->fields) {
				struct target_bytes *head = &p->fields[p->heads++];
				out = open_memstream(&head->at, &head->length);
			}
			if (!out || fprintf(out, "%s\r\n", line) < 0) usage_refuse("no memory for the heads of %s", path);
		}
		if (out && (!*line || !rest)) {
			fputs("\r\n", out);
			if (fclose(out) != 0) usage_refuse("no memory for the heads of %s", path);
			out = NULL;
		}
	}
	free(text);
	if (!p->heads) usage_refuse("--heads: %s has no fields", path);
}
