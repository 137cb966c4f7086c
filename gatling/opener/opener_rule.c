/* opener_rule.c - see opener_rule.h. */
#include "gatling/opener/opener_rule.h"

#include <string.h>

bool opener_of_directory(enum opener_rule rule) { return rule == OPENER_PEMS || rule == OPENER_PAIRS; }

bool opener_of_sockets(enum opener_rule rule) { return rule == OPENER_SOCKETS || rule == OPENER_SOCKET; }

const char *opener_name_in(const char *directory, const char *path) {
	size_t length = strlen(directory);
	while (length && directory[length - 1] == '/') length--;
	if (strncmp(path, directory, length) != 0 || path[length] != '/') return NULL;
	const char *name = path + length + 1;
	return *name && *name != '.' && !strchr(name, '/') ? name : NULL;
}
