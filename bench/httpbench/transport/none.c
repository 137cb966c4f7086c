/* none.c - see quic.h and qpack.h: for a build without HTTP/3. Nothing but quic_libraries() is called then. */
#include <stdio.h>

#include "bench/httpbench/transport/qpack.h"
#include "bench/httpbench/transport/quic.h"

bool quic_libraries(char *text) {
	snprintf(text, QUIC_TEXT, "no HTTP/3 (needs ngtcp2 1.22, nghttp3 1.15 and OpenSSL 3.5.1)");
	return false;
}

struct quic_thread *quic_thread_new(const struct quic_settings *settings, const struct quic_owner *calls) {
	(void)settings, (void)calls;
	return NULL;
}

void quic_thread_free(struct quic_thread *thread) { (void)thread; }

struct quic *quic_new(struct quic_thread *thread, io_loop *loop, int fd, struct io_alarm *alarm, void *owner) {
	(void)thread, (void)loop, (void)fd, (void)alarm, (void)owner;
	return NULL;
}

void quic_free(struct quic *q) { (void)q; }

ssize_t quic_receive(struct quic *q) {
	(void)q;
	return -1;
}

int quic_expire(struct quic *q) {
	(void)q;
	return -1;
}

int quic_send(struct quic *q) {
	(void)q;
	return -1;
}

const char *quic_why(const struct quic *q) {
	(void)q;
	return "";
}

int64_t quic_open(struct quic *q, void *request) {
	(void)q, (void)request;
	return -1;
}

int64_t quic_open_one_way(struct quic *q) {
	(void)q;
	return -1;
}

void quic_cancel(struct quic *q, int64_t stream, uint64_t error) { (void)q, (void)stream, (void)error; }
void quic_stop_sending(struct quic *q, int64_t stream, uint64_t error) { (void)q, (void)stream, (void)error; }

bool qpack_request(const struct target_field *field, unsigned fields, size_t content, struct target_bytes *request) {
	(void)field, (void)fields, (void)content, (void)request;
	return false;
}
