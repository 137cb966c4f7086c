/* sockets.h - the listening sockets of the process: those that it inherits, and those that it opens. They outlive
 * workers, which get duplicates, and can be passed on to another process. As long as some process has a socket open, no
 * connection in its queue is lost. */
#ifndef GATLING_KEEPER_SOCKETS_H
#define GATLING_KEEPER_SOCKETS_H

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
	bool dual_stack; /* IPv6, but accepts IPv4 connections, too */
};

struct listening_socket {
	int fd;
	struct socket_address address;
	char *text;             /* the address in the form of -i; NULL: all addresses */
	bool secure;            /* speaks TLS */
	unsigned group;         /* the same for all sockets of an address; 0: this process does not serve it */
	unsigned place, places; /* of one for datagrams: its number in the group, and how many there are */
};

struct sockets {
	struct listening_socket *at;
	unsigned count, groups;
	/* The descriptor of the status page's socket (status/status.h), which is not in `at`; 0: none. */
	int status;
	/* How often to try again to bind an address that is in use, because the previous process is about to end. */
	unsigned patience;
	bool activated; /* a service manager has opened some, all of which are served (service.h) */
	bool datagrams; /* they are of UDP (datagram_sockets.h), otherwise of TCP, or unix sockets */
};

enum { SOCKETS_MAX = 32768 };

/* Returns a pointer to the port, in network byte order, of an address that is not a unix socket's. */
in_port_t *socket_port(struct socket_address *address);

/* Returns the port of an address; 0 for a unix socket. */
unsigned socket_port_number(const struct socket_address *address);

/* Writes the path of a unix socket to path (SOCKET_PATH_MAX bytes), with a NUL. Returns false if it has none. */
enum { SOCKET_PATH_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) + 1 };
bool socket_path(int fd, char *path);

/* Returns whether a socket listens. */
bool socket_listens(int fd);

/* Returns whether a socket is of UDP. */
bool socket_takes_datagrams(int fd);

/* Adds a socket, and owns fd from then on; closes it on failure. Returns 0, or -1 with errno: EINVAL if it is of
 * another kind, EMFILE if there are SOCKETS_MAX, or ENOMEM. */
int sockets_add(struct sockets *sockets, int fd, bool secure, unsigned group);

/* Puts the sockets of an address that are in no group into this one, and sets whether they speak TLS. Port 0 fits any
 * port of a socket that already did as `secure` says; then *address gets that port. Returns how many sockets there
 * are. */
unsigned sockets_take(struct sockets *sockets, struct socket_address *address, bool secure, unsigned group);

/* Sets the text of the sockets of a group to a copy; NULL: all addresses. Returns 0, or -1 with errno ENOMEM. */
int sockets_name(struct sockets *sockets, unsigned group, const char *text);

/* Returns whether any of the sockets speaks TLS. */
bool sockets_any_secure(const struct sockets *sockets);

/* Closes the sockets for which which() returns true; if it is NULL, all of them and the status page's. */
void sockets_close(struct sockets *sockets, bool (*which)(const struct listening_socket *socket));

/* Closes those that are in no group. */
void sockets_close_unused(struct sockets *sockets);

#endif
