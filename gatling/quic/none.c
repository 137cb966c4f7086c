/* none.c - see quic.h and libraries.h: for a build without HTTP/3. */
#include <errno.h>
#include <stdio.h>

#include "gatling/quic/libraries.h"
#include "gatling/quic/quic.h"

void quic_libraries(char text[QUIC_LIBRARIES_MAX]) {
	snprintf(text, QUIC_LIBRARIES_MAX,
			 "no HTTP/3 (needs libngtcp2 >= 1.22, libngtcp2_crypto_ossl, libnghttp3 >= 1.15, OpenSSL >= 3.5.1)");
}

struct quic *quic_new(struct conn_context *context, const struct datagram_sockets *sockets, unsigned worker,
					  unsigned workers) {
	(void)context, (void)sockets, (void)worker, (void)workers;
	return NULL;
}

void quic_free(struct quic *quic) { (void)quic; }

int quic_set_up_socket(int fd) {
	(void)fd;
	errno = ENOSYS;
	return -1;
}

int quic_open_socket(const struct sockaddr *address, socklen_t length, bool dual_stack) {
	(void)address, (void)length, (void)dual_stack;
	errno = ENOSYS;
	return -1;
}

int quic_route(int fd, unsigned count) {
	(void)fd, (void)count;
	return -1;
}

unsigned quic_port(const struct quic *quic) {
	(void)quic;
	return 0;
}

void quic_serve(struct quic *quic) { (void)quic; }
void quic_hand_over(struct quic *quic) { (void)quic; }

void quic_use_certificates(struct quic *quic, const struct certificates *certificates, bool strict_sni) {
	(void)quic, (void)certificates, (void)strict_sni;
}

void quic_use_fields(struct quic *quic, struct slice lines) { (void)quic, (void)lines; }
void quic_readable(struct quic_cookie *cookie) { (void)cookie; }
void quic_writable(struct quic_cookie *cookie) { (void)cookie; }
void quic_turn(struct quic *quic) { (void)quic; }
void quic_drain(struct quic *quic, bool closes) { (void)quic, (void)closes; }
