/* broker_channel.h - the inside of broker/: broker.c makes requests, and broker_process.c answers them. They send
 * structs over a socket pair: a request, then a reply that may carry a descriptor, or be followed by data: the text of
 * a file, the names in a directory, or what is seen of the files. */
#ifndef GATLING_BROKER_BROKER_CHANNEL_H
#define GATLING_BROKER_BROKER_CHANNEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "gatling/broker/broker_rule.h"
#include "gatling/sandbox/child.h"

struct account; /* sandbox/account.h */

struct broker_place {
	enum broker_rule rule;
	char *path;       /* of the directory; absolute */
	int directory;    /* -1: the path is opened for each request */
	const char *name; /* of the file; "" for a directory */
	char *listed;     /* in the process: the names that were listed last; NULL: none */
	size_t listed_length;
};

/* A socket file to which nobody connects. */
struct broker_refused {
	dev_t device;
	ino_t inode;
};

struct broker {
	struct broker_place place[BROKER_PLACES];
	int places;
	struct broker_refused *refused;
	unsigned refusals;
	struct child child;
	int wait_ms;           /* for an answer, but for a log */
	bool ended;            /* a call has failed, and the process was ended */
	bool late;             /* the answer to the last request has not come yet */
	atomic_uint missed;    /* calls without an answer */
	pthread_mutex_t mutex; /* guards channel, ended and late */
};

enum broker_action { ACTION_NONE, ACTION_OPEN_LOG, ACTION_READ, ACTION_STAT, ACTION_LIST, ACTION_LOOK, ACTION_CONNECT };

struct broker_request {
	uint8_t action, place;
	uint32_t first; /* ACTION_LOOK: the number of a name */
	char name[BROKER_NAME];
};

struct broker_reply {
	int error;
	uint32_t length; /* bytes of data that follow */
	struct stat st;
};

/* Send or receive length bytes, and try that for a second while there is no memory. Return false on failure. */
bool broker_send(int fd, const void *data, size_t length);
bool broker_receive(int fd, void *data, size_t length);

/* Send or receive a reply with a descriptor; -1: without one. broker_receive_reply() then leaves *fd alone. */
bool broker_send_reply(int channel, const struct broker_reply *reply, int fd);
bool broker_receive_reply(int channel, struct broker_reply *reply, int *fd);

/* --- broker_process.c --- */

/* Returns the name, within path, of a socket that may be connected to in a place, or NULL. */
const char *broker_socket_name(const struct broker_place *place, const char *path);

/* Opens the directory of a place by its path. Returns the descriptor, or -1 with errno. */
int broker_open_directory(const struct broker_place *place);

/* Answers requests until the server ends. */
__attribute__((noreturn)) void broker_serve(struct broker *broker, bool sandbox, const struct account *user);

#endif
