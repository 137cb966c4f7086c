/* take_over_protocol.h - what the old and the new process say to each other (take_over.h), over a stream socket:
 *
 *   old  struct take_over_greeting, with a nonce
 *   new  struct take_over_answer, with the nonce of the old process and its own
 *   old  struct take_over_offer, with the nonce of the new process; then each socket with a byte for its kind, and
 *        behind that of a channel a struct datagram_note
 *   new  TAKE_OVER_READY; or TAKE_OVER_FAILED and a text, up to the end of file
 *   old  TAKE_OVER_CONFIRMED or TAKE_OVER_LATE
 *
 * End of file means that the other process has ended. No bytes of another protocol can pass for an answer, since they
 * lack the nonce. Name and version stand in front in all later versions, so that either process can say why it refuses.
 *
 * In version 1 the old process sent the offer at once, and took any "r" for TAKE_OVER_READY; in version 2 there were no
 * sockets for datagrams, and no channels. A new process still takes over from one of these versions, but an old one
 * hands nothing over to it. */
#ifndef GATLING_KEEPER_TAKE_OVER_PROTOCOL_H
#define GATLING_KEEPER_TAKE_OVER_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TAKE_OVER_VERSION = 3, TAKE_OVER_VERSION_LEAST = 2 /* with a greeting */, TAKE_OVER_NONCE = 16 };
#define TAKE_OVER_NAME "gatling\n"
#define TAKE_OVER_NAME_1 "gatling 1\n"

struct take_over_name {
	char name[12];    /* with NULs behind it */
	uint32_t version; /* in version 1 the number of sockets */
};

struct take_over_greeting {
	struct take_over_name name;
	unsigned char nonce[TAKE_OVER_NONCE];
};

struct take_over_answer {
	struct take_over_greeting greeting; /* that of the old process, returned */
	unsigned char nonce[TAKE_OVER_NONCE];
};

struct take_over_offer {
	unsigned char nonce[TAKE_OVER_NONCE]; /* of the new process */
	uint32_t sockets;                     /* 0: another process is just taking over */
};

enum take_over_kind {
	KIND_PLAIN = 'h',
	KIND_SECURE = 's',
	KIND_PATH = 'p',
	KIND_STATUS = 't',
	KIND_DATAGRAMS = 'd',
	KIND_CHANNEL = 'c'
};

/* What the new process sends in one byte: TAKE_OVER_ASKS in place of an answer, to a process of the same keeper, which
 * sends no greeting. */
enum take_over_reply {
	TAKE_OVER_ASKS = 'a',
	TAKE_OVER_READY = 'r',
	TAKE_OVER_FAILED = 'f',
	TAKE_OVER_CONFIRMED = 'k',
	TAKE_OVER_LATE = 'l'
};

/* Limits how long each call on a socket waits. */
void take_over_limit_wait(int fd, int seconds);

/* Return false if a call has failed. */
bool take_over_send(int fd, const void *data, size_t length);
bool take_over_send_byte(int fd, char byte);

/* Returns whether the other process belongs to root or to the owner, the user who started this one. */
bool take_over_trusts(int channel, uid_t owner);

#endif
