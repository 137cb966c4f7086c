/* take_over_protocol.c - see take_over_protocol.h. */
#include "gatling/keeper/take_over_protocol.h"

#include <sys/socket.h>
#include <sys/time.h>

#include "gatling/base/platform.h"

void take_over_limit_wait(int fd, int seconds) {
	const struct timeval limit = {.tv_sec = seconds};
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool take_over_send(int fd, const void *data, size_t length) {
	return send(fd, data, length, MSG_NOSIGNAL) == (ssize_t)length;
}

bool take_over_send_byte(int fd, char byte) { return take_over_send(fd, &byte, 1); }

bool take_over_trusts(int channel, uid_t owner) {
	uid_t user;
	return platform_peer_user(channel, &user) == 0 && (user == 0 || user == owner);
}
