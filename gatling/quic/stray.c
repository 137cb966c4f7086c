/* stray.c - see endpoint.h: datagrams of no connection, some of which begin one. */
#include <openssl/rand.h>

#include "gatling/quic/endpoint.h"

enum {
	RESET_RANDOM = 22,            /* random bytes of a stateless reset, */
	RESET_OF = RESET_RANDOM + 21, /* and the shortest packet that is answered with one (RFC 9000, section 10.3) */
	PACKET_MAX = NGTCP2_MAX_UDP_PAYLOAD_SIZE /* of those that are not of a connection */
};

/* Counts an answer to somebody who has no connection. Returns whether it may be sent. */
static bool may_answer_stray(struct quic *e) {
	const int64_t second = io_now(e->context->loop) / 1000;
	if (second != e->second) e->strays = 0;
	e->second = second;
	return e->strays++ < QUIC_STRAYS;
}

void quic_negotiate_version(struct quic *e, const struct quic_datagram *d, const ngtcp2_version_cid *v) {
	static const uint32_t versions[] = {NGTCP2_PROTO_VER_V2, NGTCP2_PROTO_VER_V1}; /* all that ngtcp2 takes */
	uint8_t packet[PACKET_MAX], random;
	if (!may_answer_stray(e) || RAND_bytes(&random, 1) != 1) return;
	const ngtcp2_ssize n =
		ngtcp2_pkt_write_version_negotiation(packet, sizeof packet, random, v->scid, v->scidlen, v->dcid, v->dcidlen,
											 versions, sizeof versions / sizeof *versions);
	if (n > 0) quic_send(d->socket, &d->path, packet, (size_t)n);
}

void quic_reset(struct quic *e, const struct quic_datagram *d, const ngtcp2_version_cid *v) {
	uint8_t packet[PACKET_MAX], random[RESET_RANDOM];
	ngtcp2_stateless_reset_token token;
	ngtcp2_cid cid;
	ngtcp2_cid_init(&cid, v->dcid, v->dcidlen);
	if (d->length < RESET_OF || !may_answer_stray(e) || RAND_bytes(random, sizeof random) != 1 ||
		ngtcp2_crypto_generate_stateless_reset_token(token.data, quic_secret(e), QUIC_SECRET, &cid) != 0)
		return;
	const ngtcp2_ssize n = ngtcp2_pkt_write_stateless_reset2(packet, sizeof packet, &token, random, sizeof random);
	if (n > 0) quic_send(d->socket, &d->path, packet, (size_t)n);
}

/* Has the client show that it receives at its address (section 8.1.2). */
static void retry(struct quic *e, const struct quic_datagram *d, const ngtcp2_pkt_hd *head) {
	uint8_t packet[PACKET_MAX], token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN2];
	ngtcp2_cid scid;
	if (!quic_id_make(e, &scid)) return;
	const ngtcp2_ssize length =
		ngtcp2_crypto_generate_retry_token2(token, quic_secret(e), QUIC_SECRET, head->version, d->path.remote.addr,
											d->path.remote.addrlen, &scid, &head->dcid, quic_now(e));
	if (length < 0) return;
	const ngtcp2_ssize n = ngtcp2_crypto_write_retry(packet, sizeof packet, head->version, &head->scid, &scid,
													 &head->dcid, token, (size_t)length);
	if (n > 0) quic_send(d->socket, &d->path, packet, (size_t)n);
}

static bool is_validated(const struct quic *e, const struct quic_datagram *d, const ngtcp2_pkt_hd *head,
						 ngtcp2_cid *original) {
	return head->tokenlen &&
		   ngtcp2_crypto_verify_retry_token2(original, head->token, head->tokenlen, quic_secret(e), QUIC_SECRET,
											 head->version, d->path.remote.addr, d->path.remote.addrlen, &head->dcid,
											 QUIC_RETRY_S * NGTCP2_SECONDS, quic_now(e)) == 0;
}

/* Tells the client that it gets no connection. */
static void refuse(struct quic *e, const struct quic_datagram *d, const ngtcp2_pkt_hd *head, uint64_t error) {
	uint8_t packet[PACKET_MAX];
	if (!may_answer_stray(e)) return;
	const ngtcp2_ssize n = ngtcp2_crypto_write_connection_close(packet, sizeof packet, head->version, &head->scid,
																&head->dcid, error, NULL, 0);
	if (n > 0) quic_send(d->socket, &d->path, packet, (size_t)n);
}

/* Returns whether a client would be refused another connection. */
static bool is_refused(const struct quic *e, const struct peer *peer) {
	struct conn_context *w = e->context;
	if (w->refusal(w, peer)) return true;
	limits_return_connection(w->exchanges.limits, conn_owner(w, peer));
	return false;
}

/* Returns whether clients have to show that they receive at their address before anything is done for them. */
static bool asks_for_token(const struct quic *e) {
	const struct conn_context *w = e->context;
	return e->half_open >= QUIC_HALF_OPEN || w->connections >= w->connections_short || quic_is_overloaded(e);
}

struct quic_connection *quic_begin(struct quic *e, const struct quic_datagram *d) {
	const struct peer peer = peer_of(d->path.remote.addr);
	ngtcp2_pkt_hd head;
	ngtcp2_cid original;
	if (e->draining || ngtcp2_accept(&head, d->bytes, d->length) != 0) return NULL;
	const bool validated = is_validated(e, d, &head, &original);
	const bool was_retried = head.tokenlen && head.token[0] == NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY2;
	if (was_retried && !validated)
		refuse(e, d, &head, NGTCP2_INVALID_TOKEN); /* it takes no second one (section 8.1.2) */
	else if (!validated && (asks_for_token(e) || is_refused(e, &peer))) retry(e, d, &head);
	else if (validated && is_refused(e, &peer)) refuse(e, d, &head, NGTCP2_CONNECTION_REFUSED);
	else return quic_accept(e, d->socket, &head, &d->path, validated ? &original : NULL);
	return NULL;
}
