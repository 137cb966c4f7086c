/* values.c - see values.h. */
#include "gatling/status/values.h"

#include <inttypes.h>
#include <string.h>

/* The words of VALUE_LIST. */
#define TOTAL(name) .family = (name), .grows = true
#define NOW(name) .family = (name)
#define BYTES .unit = "bytes"
#define HELP(sentence) .help = (sentence)
#define TEXT(line, name, ...) .place[IN_TEXT] = {.in = (line), .words = (name), __VA_ARGS__}
#define PAGE(line, name, ...) .place[IN_PAGE] = {.in = (line), .words = (name), __VA_ARGS__}
#define ALWAYS .always = true
#define FIRST .order = (-1)
#define LAST .order = 1
#define PART(family) .part = (family)
#define PROC(in, called) .table = (in), .number = (called)

/* Families of several values. */
#define REQUESTS(one)                                                                                                  \
	TOTAL("requests"), .label = "protocol", .which = (one), TEXT("requests", one), PAGE("Answers", one)
#define HANDSHAKES(one)                                                                                                \
	TOTAL("tls_handshakes"), .label = "result", .which = (one), TEXT("handshakes", one),                               \
							 PAGE("TLS handshakes", one, ALWAYS)
#define CACHE(one) TOTAL("cache_lookups"), .label = "result", .which = (one), TEXT("cache", one), PAGE("Files", one)
#define REFUSED(one)                                                                                                   \
	TOTAL("refused_connections"), .label = "reason", .which = (one), TEXT("refused", one),                             \
								  PAGE("Limits", "refused: " one)
#define CLOSED(one)                                                                                                    \
	TOTAL("closed_connections"), .label = "reason", .which = (one), TEXT("closed", one), PAGE("Limits", "closed: " one)
#define CONNECTIONS(one)                                                                                               \
	NOW("connections"), .label = "state", .which = (one), TEXT("connections", one), PAGE("Connections", one)

#define VALUE_ROW(name, ...) [name] = {__VA_ARGS__},
const struct value_row value_row[VALUES] = {VALUE_LIST(VALUE_ROW)};
const struct value_row upstream_value_row[UPSTREAM_VALUES] = {UPSTREAM_VALUE_LIST(VALUE_ROW)};

bool value_begins_family(unsigned value) {
	return !value || strcmp(value_row[value].family, value_row[value - 1].family) != 0;
}

unsigned values_in(unsigned place, const char *in, enum value list[VALUES]) {
	unsigned count = 0;
	for (int order = -1; order <= 1; order++)
		for (unsigned i = 0; i < VALUES; i++) {
			const struct place *p = &value_row[i].place[place];
			if (p->in && strcmp(p->in, in) == 0 && p->order == order) list[count++] = (enum value)i;
		}
	return count;
}

void value_print(FILE *out, const struct value_row *row, uint64_t number) {
	if (row->per_unit) fprintf(out, "%.6f", (double)number / (double)row->per_unit);
	else fprintf(out, "%" PRIu64, number);
}
