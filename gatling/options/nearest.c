/* nearest.c - see nearest.h. */
#include "gatling/options/nearest.h"

#include <string.h>

enum { NAME_MAX_LENGTH = 32, CHANGED_PART = 3 };

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

/* Returns the distance of two names of at most NAME_MAX_LENGTH characters (Damerau and Levenshtein, restricted). */
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length) {
	unsigned d[NAME_MAX_LENGTH + 1][NAME_MAX_LENGTH + 1];
	for (unsigned i = 0; i <= a_length; i++) d[i][0] = i;
	for (unsigned j = 0; j <= b_length; j++) d[0][j] = j;
	for (unsigned i = 1; i <= a_length; i++) {
		for (unsigned j = 1; j <= b_length; j++) {
			d[i][j] = least(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]), least(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[a_length][b_length];
}

const struct option_row *nearest_row(const struct option_row *rows, const char *text) {
	const size_t length = strcspn(text, "=");
	const struct option_row *nearest = NULL;
	unsigned changes = (unsigned)(length / CHANGED_PART) + 1;
	if (!length || length > NAME_MAX_LENGTH) return NULL;
	for (const struct option_row *row = rows; row->name; row++) {
		const size_t other = strlen(row->name);
		if (other > NAME_MAX_LENGTH) continue;
		const unsigned n = strncmp(row->name, text, length) == 0 ? 0 : distance(text, length, row->name, other);
		if (n >= changes) continue;
		changes = n;
		nearest = row;
	}
	return nearest;
}
