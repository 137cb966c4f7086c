/* broker_rule.c - see broker_rule.h. */
#include "gatling/broker/broker_rule.h"

#include <string.h>

bool broker_of_directory(enum broker_rule rule) { return rule == BROKER_PEMS || rule == BROKER_PAIRS; }

bool broker_of_logs(enum broker_rule rule) { return rule == BROKER_LOG || rule == BROKER_LOGS; }

bool broker_of_sockets(enum broker_rule rule) { return rule == BROKER_SOCKETS || rule == BROKER_SOCKET; }

const char *broker_name_in(const char *directory, const char *path) {
	size_t length = strlen(directory);
	while (length && directory[length - 1] == '/') length--;
	if (strncmp(path, directory, length) != 0 || path[length] != '/') return NULL;
	const char *name = path + length + 1;
	return *name && *name != '.' && !strchr(name, '/') ? name : NULL;
}
