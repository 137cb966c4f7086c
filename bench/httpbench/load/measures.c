/* measures.c - see measures.h. */
#include "bench/httpbench/load/measures.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/platform.h"

enum { STATUSES_LISTED = 3 };
_Static_assert((STATUSES_LISTED + 1) * sizeof ", 503 18446744073709551615" <= MEASURES_TEXT, "they have to fit");

const char *const duration_name[DURATIONS] = {
	[DURATION_CONNECT] = "connect",       [DURATION_HANDSHAKE] = "handshake", [DURATION_UPGRADE] = "upgrade",
	[DURATION_FIRST_BYTE] = "first_byte", [DURATION_WHOLE] = "whole",         [DURATION_LATENESS] = "lateness",
};

const char *const failure_name[FAILURES] = {
	[FAILURE_REFUSED] = "refused",       [FAILURE_RESET] = "reset",
	[FAILURE_TIMEOUT] = "timed_out",     [FAILURE_SHORT] = "short",
	[FAILURE_STATUS] = "wrong_status",   [FAILURE_BYTES] = "wrong_bytes",
	[FAILURE_PROTOCOL] = "not_http",     [FAILURE_WEBSOCKET] = "not_websocket",
	[FAILURE_PORTS] = "no_port",         [FAILURE_DESCRIPTORS] = "no_descriptor",
	[FAILURE_CONNECT] = "not_connected", [FAILURE_TLS] = "tls",
	[FAILURE_UNSENT] = "unsent",
};

const char *const count_name[COUNTS] = {
	[COUNT_SENT] = "sent",       [COUNT_ANSWERED] = "answered", [COUNT_LATE] = "late",
	[COUNT_WAITED] = "waited",   [COUNT_DROPPED] = "dropped",   [COUNT_CONNECTED] = "connected",
	[COUNT_RESUMED] = "resumed", [COUNT_BYTES] = "bytes",
};

void measures_add(struct measures *sum, const struct measures *m) {
	for (int i = 0; i < DURATIONS; i++) histogram_add(&sum->duration[i], &m->duration[i]);
	for (int i = 0; i < FAILURES; i++) sum->failure[i] += m->failure[i];
	for (int i = 0; i < COUNTS; i++) sum->count[i] += m->count[i];
	for (int i = 0; i < MEASURES_STATUSES; i++) sum->status[i] += m->status[i];
	sum->spun_ns += m->spun_ns;
	sum->queued_ns += m->queued_ns;
	if (m->last_ns > sum->last_ns) sum->last_ns = m->last_ns;
	if (m->ended_ns > sum->ended_ns) sum->ended_ns = m->ended_ns;
	if (!sum->connect_error) sum->connect_error = m->connect_error;
	if (!*sum->tls) memcpy(sum->tls, m->tls, TLS_TEXT);
	if (!*sum->tls_failed) memcpy(sum->tls_failed, m->tls_failed, TLS_TEXT);
	if (!*sum->source_failed) memcpy(sum->source_failed, m->source_failed, MEASURES_TEXT);
	if (!*sum->websocket_failed) memcpy(sum->websocket_failed, m->websocket_failed, MEASURES_TEXT);
	if (!*sum->quic_failed) memcpy(sum->quic_failed, m->quic_failed, QUIC_TEXT);
}

void measures_reset(struct measures *m) {
	for (int i = 0; i < DURATIONS; i++) histogram_reset(&m->duration[i]);
	for (int i = 0; i < FAILURES; i++) m->failure[i] = 0;
	for (int i = 0; i < COUNTS; i++) m->count[i] = 0;
	memset(m->status, 0, sizeof m->status);
	m->spun_ns = 0;
	m->queued_ns = m->last_ns = m->ended_ns = 0;
	m->connect_error = 0;
	*m->tls = *m->tls_failed = *m->source_failed = *m->websocket_failed = *m->quic_failed = '\0';
}

enum failure measures_reason(int error) {
	switch (error) {
	case ECONNREFUSED: return FAILURE_REFUSED;
	case ECONNRESET:
	case EPIPE: return FAILURE_RESET;
	case ETIMEDOUT: return FAILURE_TIMEOUT;
	case ENODATA: return FAILURE_SHORT;
	case EPROTO: return FAILURE_TLS;
	case EBADMSG: return FAILURE_PROTOCOL;
	case EADDRNOTAVAIL: return FAILURE_PORTS;
	case EMFILE:
	case ENFILE: return FAILURE_DESCRIPTORS;
	default: return FAILURE_CONNECT;
	}
}

uint64_t measures_failed(const struct measures *m) {
	uint64_t sum = 0;
	for (int i = 0; i < FAILURES; i++) sum += m->failure[i];
	return sum;
}

bool measures_no_upgrade(const struct measures *m) {
	return *m->websocket_failed && !m->duration[DURATION_UPGRADE].samples;
}

/* Returns the index of the greatest count, or of the first of several. */
static int greatest(const uint64_t *count) {
	int found = 0;
	for (int i = 1; i < MEASURES_STATUSES; i++)
		if (count[i] > count[found]) found = i;
	return found;
}

void measures_statuses(const struct measures *m, char *text, size_t size) {
	uint64_t left[MEASURES_STATUSES]; /* counts of the statuses that have not been listed yet */
	char *end = text + size;
	memcpy(left, m->status, sizeof left);
	*text = '\0';
	for (int listed = 0; left[greatest(left)]; listed++) {
		const int status = greatest(left);
		const unsigned long long count = left[status];
		left[status] = 0;
		if (listed == STATUSES_LISTED) {
			(void)snprintf(text, (size_t)(end - text), ", ...");
			return;
		}
		const bool alone = !listed && !left[greatest(left)];
		if (alone) text += snprintf(text, (size_t)(end - text), "%d", status);
		else text += snprintf(text, (size_t)(end - text), "%s%d %llu", listed ? ", " : "", status, count);
	}
}

void measures_unsent(struct measures *m, int64_t now_ns) {
	m->ended_ns = now_ns;
	m->failure[FAILURE_UNSENT]++;
	histogram_censor(&m->duration[DURATION_WHOLE]);
	histogram_censor(&m->duration[DURATION_LATENESS]);
}
