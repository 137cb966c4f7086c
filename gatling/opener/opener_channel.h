/* opener_channel.h - the inside of opener/: opener.c makes requests, and opener_process.c answers them. They send
 * structs over a socket pair: a request, then a reply that may carry a descriptor, or be followed by the names in a
 * directory. */
#ifndef GATLING_OPENER_OPENER_CHANNEL_H
#define GATLING_OPENER_OPENER_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "gatling/opener/opener_rule.h"

struct account; /* sandbox/account.h */

struct opener_place {
	enum opener_rule rule;
	char *path;       /* of the directory; absolute */
	int directory;    /* -1: the path is opened for each request */
	const char *name; /* of the file; "" for a directory */
};

/* A socket file to which nobody connects. */
struct opener_refused {
	dev_t device;
	ino_t inode;
};

struct opener {
	struct opener_place place[OPENER_PLACES];
	int places;
	struct opener_refused *refused;
	unsigned refusals;
	pid_t process; /* 0: none */
	int channel;
	bool ended;            /* a call has failed, and the process was ended */
	bool late;             /* the answer to the last request has not come yet */
	pthread_mutex_t mutex; /* guards channel, ended and late */
};

enum opener_action { ACTION_NONE, ACTION_OPEN, ACTION_STAT, ACTION_LIST, ACTION_CONNECT };

struct opener_request {
	uint8_t action, place;
	char name[OPENER_NAME];
};

struct opener_reply {
	int error;
	uint32_t length; /* bytes of names that follow */
	struct stat st;
};

/* Send or receive length bytes, and try that for a second while there is no memory. Return false on failure. */
bool opener_send(int fd, const void *data, size_t length);
bool opener_receive(int fd, void *data, size_t length);

/* Send or receive a reply with a descriptor; -1: without one. opener_receive_reply() then leaves *fd alone. */
bool opener_send_reply(int channel, const struct opener_reply *reply, int fd);
bool opener_receive_reply(int channel, struct opener_reply *reply, int *fd);

/* --- opener_process.c --- */

/* Returns the name, within path, of a socket that may be connected to in a place, or NULL. */
const char *opener_socket_name(const struct opener_place *place, const char *path);

/* Opens the directory of a place by its path. Returns the descriptor, or -1 with errno. */
int opener_open_directory(const struct opener_place *place);

/* Answers requests until the server ends. */
__attribute__((noreturn)) void opener_serve(struct opener *opener, bool sandbox, const struct account *user);

#endif
