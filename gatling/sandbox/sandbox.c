/* sandbox.c - see sandbox.h: the functions that are the same on all systems. */
#include "gatling/sandbox/sandbox.h"

#include <stdio.h>
#include <string.h>

void sandbox_note(struct sandbox *s, const char *name, int error) {
	if (s->parts == SANDBOX_PARTS) return;
	s->part[s->parts].name = name;
	s->part[s->parts++].error = error;
}

static const char *reason(int error) { return error == SANDBOX_OFF ? "--sandbox off" : strerror(error); }

char *sandbox_describe(const struct sandbox *s) {
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	if (!out) return NULL;
	const char *separator = "";
	for (unsigned i = 0; i < s->parts; i++) {
		if (s->part[i].error) continue;
		fprintf(out, "%s%s", separator, s->part[i].name);
		separator = ", ";
	}
	if (!*separator) fputs("none", out);
	separator = "; without ";
	for (unsigned i = 0; i < s->parts; i++) {
		if (!s->part[i].error) continue;
		fprintf(out, "%s%s (%s)", separator, s->part[i].name, reason(s->part[i].error));
		separator = ", ";
	}
	return fclose(out) == 0 ? text : NULL;
}
