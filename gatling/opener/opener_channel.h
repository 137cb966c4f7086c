/* opener_channel.h - the inside of opener/: opener.c asks, opener_process.c answers. Both exchange structs over a
 * socket pair: a request, then a reply that may carry a descriptor, or be followed by the names in a directory. */
#ifndef GATLING_OPENER_OPENER_CHANNEL_H
#define GATLING_OPENER_OPENER_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "gatling/opener/opener_rule.h"

struct opener_place {
	enum opener_rule rule;
	char *path;       /* of the directory, absolute unless that is of sockets */
	int directory;    /* -1: the path is opened for each request */
	const char *name; /* of the file, if there is one */
};

struct opener {
	struct opener_place place[OPENER_PLACES];
	int places;
	pid_t process; /* 0: none */
	int channel;
	bool ended;            /* the process, without having been told to */
	bool late;             /* it has not answered the last request yet */
	pthread_mutex_t mutex; /* of these three */
};

enum opener_action { ACTION_OPEN, ACTION_STAT, ACTION_LIST, ACTION_CONNECT };

struct opener_request {
	uint8_t action, place;
	char name[OPENER_NAME];
};

struct opener_reply {
	int error;
	uint32_t length; /* bytes of names that follow */
	struct stat st;
};

/* Return whether all of it was sent or received, which is tried for a second while memory is lacking. */
bool opener_send(int fd, const void *data, size_t length);
bool opener_receive(int fd, void *data, size_t length);

/* The same for a reply with a descriptor; -1: there is none. */
bool opener_send_reply(int channel, const struct opener_reply *reply, int fd);
bool opener_receive_reply(int channel, struct opener_reply *reply, int *fd);

/* --- opener_process.c --- */

/* Returns whether the names in such a place may be listed. */
bool opener_of_directory(enum opener_rule rule);

/* Opens the directory of a place by its path. Returns -1 with errno. */
int opener_open_directory(const struct opener_place *place);

/* Answers until the other side ends. */
__attribute__((noreturn)) void opener_serve(struct opener *opener, bool sandbox);

#endif
