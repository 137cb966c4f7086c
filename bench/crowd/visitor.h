/* visitor.h - the visitors of a client. Each one arrives, requests a page and then, on the same connection, one asset
 * after the other, thinks, requests another page, and leaves. A visitor who is refused, cut off or out of patience
 * leaves at once. */
#ifndef BENCH_CROWD_VISITOR_H
#define BENCH_CROWD_VISITOR_H

#include "bench/crowd/plan.h"
#include "bench/crowd/tally.h"
#include "bench/client/response.h"
#include "io/io.h"

struct visitor {
	int fd;       /* -1: a vacant place, and next is the next one */
	uint8_t kind; /* enum kind */
	uint8_t state;
	bool begun;   /* a byte of this page's responses has come */
	bool used;    /* a response has come on this connection */
	bool gone;    /* the server has closed it while the visitor thinks */
	uint16_t url; /* the index of the requested URL */
	uint16_t pages_left;
	uint32_t sent;         /* bytes of the request that were sent */
	uint32_t input_length; /* bytes of an incomplete head in input */
	int32_t next;
	int64_t due_ns; /* when the page was due; of a hostile visitor: the arrival */
	char *input;
	struct response response;
};

/* All visitors of a client. */
struct visitors {
	const struct crowd_plan *plan;
	io_loop *loop;
	int64_t now_ns;
	struct visitor *visitor;
	int32_t vacant; /* the first vacant place; -1: there is none */
	unsigned open;
	uint32_t source;  /* the number of the next source address */
	uint32_t hostile; /* the number of hostile visitors so far, plus that of the client */
	struct tally *tally;
	char *input; /* VISITORS_READ_MAX bytes: the longest head fits */
};

enum { VISITORS_READ_MAX = 256 * 1024 };

/* Makes places for the visitors of the client with that number; the caller sets the loop. Returns 0, or -1 with ENOMEM,
 * and then visitors_free() must still be called. */
int visitors_init(struct visitors *visitors, const struct crowd_plan *plan, unsigned number);

/* Frees the places. No visitors may be left. */
void visitors_free(struct visitors *visitors);

/* Makes a visitor arrive who was due at due_ns. */
void visitors_arrive(struct visitors *visitors, enum kind kind, int64_t due_ns);

/* Continue when the loop reports that a visitor's connection is ready, or that its deadline has passed. */
void visitor_write(struct visitors *visitors, struct visitor *visitor);
void visitor_read(struct visitors *visitors, struct visitor *visitor);
void visitor_timeout(struct visitors *visitors, struct visitor *visitor);

/* Makes all visitors leave; pages under way are not counted. */
void visitors_leave(struct visitors *visitors);

#endif
