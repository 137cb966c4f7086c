/* cookie.h - the structures that the cookie of a descriptor (io_fd()) may point to. The first byte of each says which
 * one it is. */
#ifndef GATLING_BASE_COOKIE_H
#define GATLING_BASE_COOKIE_H

enum cookie_kind {
	COOKIE_LISTENER,   /* struct listener */
	COOKIE_CONTROL,    /* struct control */
	COOKIE_CONNECTION, /* struct conn */
	COOKIE_UPSTREAM,   /* struct upstream_link */
	COOKIE_QUIC        /* struct quic_cookie */
};

#endif
