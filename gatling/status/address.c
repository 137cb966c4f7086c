/* address.c - see address.h. */
#include "gatling/status/address.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "gatling/base/slice.h"

enum { HOST_ROOM = 256, PORT_MAX = 65535 };

static bool unix_address(const char *path, struct sockaddr_storage *address, socklen_t *length) {
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	if (!*path || strlen(path) >= sizeof local.sun_path) return false;
	memcpy(local.sun_path, path, strlen(path) + 1);
	*address = (struct sockaddr_storage){0};
	memcpy(address, &local, sizeof local);
	*length = sizeof local;
	return true;
}

/* Copies a host without its brackets. Returns false if there is no room. */
static bool copy_host(struct slice host, char room[HOST_ROOM]) {
	if (host.length >= 2 && host.at[0] == '[' && host.at[host.length - 1] == ']')
		host = (struct slice){.at = host.at + 1, .length = host.length - 2};
	if (host.length >= HOST_ROOM) return false;
	*text_copy(room, host) = '\0';
	return true;
}

bool status_address(const char *text, struct sockaddr_storage *address, socklen_t *length) {
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	char host[HOST_ROOM] = "127.0.0.1";
	if (strncmp(text, "unix:", strlen("unix:")) == 0) return unix_address(text + strlen("unix:"), address, length);
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	if (!*port || strspn(port, "0123456789") != strlen(port) || strlen(port) > 5) return false;
	const unsigned long number = strtoul(port, NULL, 10);
	if (number == 0 || number > PORT_MAX) return false; /* getaddrinfo(3) takes it modulo 65536 */
	if (colon && !copy_host((struct slice){.at = text, .length = (size_t)(colon - text)}, host)) return false;
	if (!*host || getaddrinfo(host, port, &hints, &found) != 0) return false;
	memcpy(address, found->ai_addr, found->ai_addrlen);
	*length = found->ai_addrlen;
	freeaddrinfo(found);
	return true;
}
