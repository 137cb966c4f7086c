/* network.h - the clock of a process, and the network between a server of QUIC and clients there. clock_gettime(2),
 * sendmsg(2) and recvmmsg(2) are defined here: they stand before those of the C library, so that the server's own code
 * runs, and time passes when a test says so. */
#ifndef TESTS_QUIC_NETWORK_H
#define TESTS_QUIC_NETWORK_H

#include "io/datagram.h"

enum { NETWORK_DELAY_MS = 10, NETWORK_DATAGRAM = 1500, NETWORK_MESSAGE = 1 << 17, ECN_ECT_0 = 2, ECN_CE = 3 };

/* A datagram on its way. */
struct packet {
	struct packet *next;
	int64_t at_ns; /* when it arrives */
	bool to_server;
	union io_address client;
	uint8_t ecn;
	size_t length;
	uint8_t bytes[];
};

/* What becomes of a datagram. */
struct fate {
	unsigned copies; /* that arrive: 0: it is lost */
	int delay_ms;
	bool marked; /* it arrives with CE */
};

/* What has been sent, of either direction: [to_server]. */
struct network_sums {
	unsigned datagrams[2];
	size_t bytes[2];
	unsigned marked[2]; /* sent with ECT(0) */
	unsigned calls;     /* of sendmsg(2) */
};

extern struct network_sums network_sums;

/* Begins with no datagrams and without losses. of_server: returns whether a descriptor is of the server's socket. */
void network_open(bool (*of_server)(int fd));
void network_close(void);

/* Asks for the fate of each datagram; number: how many of either direction were sent before. NULL: all arrive after
 * NETWORK_DELAY_MS. */
void network_set_fate(struct fate (*fate)(bool to_server, unsigned number));

/* Has every other message of sendmsg(2) changed before it is sent, NETWORK_MESSAGE bytes at most. NULL: none is. */
void network_set_change(void (*change)(uint8_t *message, size_t *length));

/* The server's socket is full: it takes nothing. */
void network_fill(bool full);

/* The time, which never goes back. */
int64_t network_now_ns(void);
void network_set_now(int64_t now_ns);

/* Sends a datagram of a client. */
void network_send(const union io_address *client, const void *bytes, size_t length, uint8_t ecn);

/* Returns when the next datagram arrives; INT64_MAX: none is on its way. */
int64_t network_next_ns(void);

/* Returns whether a datagram has arrived at the server. */
bool network_has_arrived(void);

/* Returns the next datagram that has arrived at a client, which the caller frees; or NULL. */
struct packet *network_take(void);

/* Returns the address of a client on this machine, and that of the server, which has no port: see struct
 * io_datagrams. */
union io_address network_client(unsigned number);
union io_address network_server(void);

#endif
