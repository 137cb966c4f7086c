/* broker_channel.c - see broker_channel.h. */
#include "gatling/broker/broker_channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { PAUSES = 100 };

/* Sends or receives a whole message. If there is no memory, tries again for a second, since a side that gives up ends
 * both. No call is interrupted, since neither side handles signals. Returns false on failure. */
static bool transfer(int fd, struct msghdr *message, bool sends) {
	const struct timespec pause = {.tv_nsec = 10000000};
	struct iovec *left = message->msg_iov;
	for (int pauses = 0; pauses < PAUSES;) {
		ssize_t n = sends ? sendmsg(fd, message, MSG_NOSIGNAL) : recvmsg(fd, message, MSG_WAITALL);
		if (n == (ssize_t)left->iov_len) return true;
		if (n == -1 && errno != ENOMEM && errno != ENOBUFS) return false;
		if (n == 0 || (n > 0 && message->msg_control)) return false; /* the other side has ended */
		if (n > 0) {
			*left = (struct iovec){.iov_base = (char *)left->iov_base + n, .iov_len = left->iov_len - (size_t)n};
			continue;
		}
		nanosleep(&pause, NULL);
		pauses++;
	}
	return false;
}

bool broker_send(int fd, const void *data, size_t length) {
	struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = length};
	return transfer(fd, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}, true);
}

bool broker_receive(int fd, void *data, size_t length) {
	struct iovec part = {.iov_base = data, .iov_len = length};
	return transfer(fd, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}, false);
}

union rights {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

/* Returns a message of one part with room for a descriptor. */
static struct msghdr message_of(struct iovec *part, union rights *rights) {
	*rights = (union rights){.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	rights->header.cmsg_len = CMSG_LEN(sizeof(int));
	return (struct msghdr){
		.msg_iov = part, .msg_iovlen = 1, .msg_control = rights->room, .msg_controllen = sizeof rights->room};
}

bool broker_send_reply(int channel, const struct broker_reply *reply, int fd) {
	struct iovec part = {.iov_base = (void *)(uintptr_t)reply, .iov_len = sizeof *reply};
	union rights rights;
	struct msghdr message = message_of(&part, &rights);
	memcpy(CMSG_DATA(&rights.header), &fd, sizeof fd);
	if (fd == -1) message.msg_controllen = 0;
	return transfer(channel, &message, true);
}

bool broker_receive_reply(int channel, struct broker_reply *reply, int *fd) {
	struct iovec part = {.iov_base = reply, .iov_len = sizeof *reply};
	union rights rights;
	struct msghdr message = message_of(&part, &rights);
	if (!transfer(channel, &message, false)) return false;
	if (CMSG_FIRSTHDR(&message)) memcpy(fd, CMSG_DATA(&rights.header), sizeof *fd);
	return true;
}
