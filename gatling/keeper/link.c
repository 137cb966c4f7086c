/* link.c - see link.h. */
#include "gatling/keeper/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gatling/base/platform.h"

union socket_room {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

bool keeper_send(int channel, const struct keeper_message *m, int socket) {
	struct iovec part = {.iov_base = (void *)(uintptr_t)m,
						 .iov_len = offsetof(struct keeper_message, text) + strnlen(m->text, sizeof m->text - 1) + 1};
	union socket_room control = {
		.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (socket != -1) {
		message.msg_control = control.room;
		message.msg_controllen = sizeof control.room;
		memcpy(CMSG_DATA(&control.header), &socket, sizeof socket);
	}
	return sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)part.iov_len;
}

int keeper_receive(int channel, struct keeper_message *m, int *socket) {
	struct iovec part = {.iov_base = m, .iov_len = sizeof *m};
	union socket_room control;
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
	*socket = -1;
	const ssize_t n = recvmsg(channel, &message, MSG_DONTWAIT);
	if (n == -1) return errno == ECONNRESET ? -1 : 0;
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(socket, CMSG_DATA(&control.header), sizeof *socket);
	if (*socket != -1) (void)fcntl(*socket, F_SETFD, FD_CLOEXEC);
	if (n <= (ssize_t)offsetof(struct keeper_message, text)) return -1;
	m->text[n - (ssize_t)offsetof(struct keeper_message, text) - 1] = '\0';
	return 1;
}

void keeper_tell_manager(const struct keeper_link *link, const char *state) {
	struct keeper_message m = {.word = KEEPER_STATE};
	if (!link->managed) return;
	snprintf(m.text, sizeof m.text, "%s", state);
	(void)keeper_send(link->channel, &m, -1); /* as to the manager itself: without room it is lost */
}

void keeper_tell(const struct keeper_link *link, enum keeper_word word) {
	const struct keeper_message m = {.word = (char)word};
	(void)keeper_send(link->channel, &m, -1); /* the keeper reads at once, or has ended */
}

void keeper_tell_serving(const struct keeper_link *link, int root) {
	struct keeper_message m = {.word = KEEPER_SERVES};
	struct stat st;
	if (fstat(root, &st) == 0) m.directory = (struct directory_id){.device = st.st_dev, .inode = st.st_ino};
	(void)keeper_send(link->channel, &m, -1);
}

int keeper_wait_signal(const struct keeper_link *link, const sigset_t *signals, int64_t most_ms) {
	struct keeper_message m = {.word = KEEPER_SIGNAL};
	if (platform_wait_signal(signals, most_ms, &m.signal, &m.sender) == -1) return 0;
	switch (m.signal) {
	case SIGHUP:
	case SIGINT:
	case SIGQUIT:
	case SIGTERM:
	case SIGUSR1: break;
	default: return m.signal; /* from this process */
	}
	(void)keeper_send(link->channel, &m, -1);
	return 0;
}
