/* sockets.h - the listening sockets of the process: those that were there before it, and those that it opens. They
 * outlive workers, which get duplicates, and can be handed on: while a socket stays open in some process, no connection
 * in its queue is lost. */
#ifndef GATLING_SOCKETS_H
#define GATLING_SOCKETS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

struct socket_address {
	union {
		struct sockaddr any;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
		struct sockaddr_un local;
	} to;
	socklen_t length;
	bool dual_stack; /* IPv6, and takes connections over IPv4, too */
};

struct listening_socket {
	int fd;
	struct socket_address address;
	char *text;     /* the address, as -i takes it; NULL: all addresses */
	bool secure;    /* speaks TLS */
	unsigned group; /* those of one address that this process serves; 0: it serves none of them */
};

struct sockets {
	struct listening_socket *at;
	unsigned count, groups;
	int status;        /* of the status page (status/status.h), which is in no group; 0: none */
	unsigned patience; /* so often an address that is in use is tried again: the process before is about to end */
	bool activated;    /* a service manager has opened some: all of them are served (service.h) */
};

enum { SOCKETS_MAX = 32768 };

/* Returns where the port of an address is, which is not that of a unix socket. */
in_port_t *socket_port(struct socket_address *address);

/* Returns the port; 0: a unix socket. */
unsigned socket_port_number(const struct socket_address *address);

/* Returns whether connections can come to a socket. */
bool socket_listens(int fd);

/* Takes a descriptor, which is closed on failure. Returns 0, or -1 with errno: EINVAL if it is no stream socket of TCP
 * or a path; EMFILE if there are SOCKETS_MAX, ENOMEM. */
int sockets_add(struct sockets *sockets, int fd, bool secure, unsigned group);

/* Makes a group of the sockets of an address that are in none, and has them speak TLS or not. Port 0 fits any port of a
 * socket that did so before; the address gets the one that was found. Returns how many there are. */
unsigned sockets_take(struct sockets *sockets, struct socket_address *address, bool secure, unsigned group);

/* Names the sockets of a group as the options do. Returns 0, or -1: ENOMEM. */
int sockets_name(struct sockets *sockets, unsigned group, const char *text);

/* Returns whether one of them speaks TLS. */
bool sockets_any_secure(const struct sockets *sockets);

/* Closes those for which the function returns true; all, with that of the status page, if it is NULL. */
void sockets_close(struct sockets *sockets, bool (*which)(const struct listening_socket *socket));

#endif
