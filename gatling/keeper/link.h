/* link.h - what the keeper (keeper.h) and a server say to each other, over a socket that neither passes on. Each
 * message is one of struct keeper_message, of which only the beginning of the text is sent. When the keeper ends, the
 * server reads the end of file. */
#ifndef GATLING_KEEPER_LINK_H
#define GATLING_KEEPER_LINK_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum { KEEPER_TEXT_MAX = 4096 /* bytes of a text with its NUL; the rest is cut off */ };

enum keeper_word {
	/* of the keeper */
	KEEPER_SUCCESSOR = 's', /* with a socket to the process that will take over (take_over.h) */
	KEEPER_MISSING = 'm',   /* DIR cannot be served, and the text says why: answer with 503 */
	KEEPER_FOUND = 'f',     /* DIR is the directory again that is served */
	KEEPER_UNSEEN = 'u',    /* it is unknown what DIR is: looking it up takes long */
	KEEPER_SEEN = 'v',      /* it is known again */
	/* of both: a signal. Of the server, that another process has sent it; of the keeper, that it is to be handled. As a
	 * signal of the keeper it could be lost beside one that waits. */
	KEEPER_SIGNAL = 'g',
	/* of the server */
	KEEPER_SERVES = 'r',   /* it has begun to serve `directory` */
	KEEPER_STATE = 'n',    /* the text is for the service manager */
	KEEPER_NO_OTHER = 'l', /* it needs no successor from now on */
	KEEPER_LAME = 'h',     /* one of the processes beside it has ended: it needs a successor, which has its own */
};

/* What stands for a directory, whatever its name is. */
struct directory_id {
	dev_t device;
	ino_t inode;
};

struct keeper_message {
	char word;
	int signal;   /* of KEEPER_SIGNAL, */
	pid_t sender; /* and who has sent it to the server */
	struct directory_id directory;
	char text[KEEPER_TEXT_MAX];
};

/* The server's side. */
struct keeper_link {
	int channel;     /* to the keeper */
	int predecessor; /* to the server from which this one takes over; -1: none */
	pid_t keeper;
	bool managed; /* there is a service manager */
};

/* Sends a message, with a socket unless that is -1. Does not wait: without room the message is lost. Returns false
 * then. */
bool keeper_send(int channel, const struct keeper_message *message, int socket);

/* Receives a message, without waiting. *socket becomes the socket that came with it, or -1. Returns 1, 0 if there is
 * none, or -1 if the other side has ended. */
int keeper_receive(int channel, struct keeper_message *message, int *socket);

/* Tells the service manager something, see sd_notify(3). */
void keeper_tell_manager(const struct keeper_link *link, const char *state);

/* Tells the keeper a word without anything else. */
void keeper_tell(const struct keeper_link *link, enum keeper_word word);

/* Tells the keeper that the directory is served. */
void keeper_tell_serving(const struct keeper_link *link, int root);

/* Waits for one of the signals, as platform_wait_signal() does. Those of other processes are left to the keeper, which
 * passes them to all servers. Returns the signal, or 0 if there is nothing to do. */
int keeper_wait_signal(const struct keeper_link *link, const sigset_t *signals, int64_t most_ms);

#endif
