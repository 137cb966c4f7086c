/* visitor.h - the visitors of a client: each arrives, asks for a page and then, on the same connection, for one asset
 * after the other, thinks, asks for another page, and leaves. A visitor who is refused, cut off or out of patience
 * leaves at once. */
#ifndef BENCH_CROWD_VISITOR_H
#define BENCH_CROWD_VISITOR_H

#include "bench/crowd/plan.h"
#include "bench/crowd/tally.h"
#include "bench/response.h"
#include "io/io.h"

struct visitor {
	int fd;       /* -1: nobody; next is the next such place */
	uint8_t kind; /* enum kind */
	uint8_t state;
	bool begun;   /* a byte of this page has come */
	bool used;    /* the connection has had an answer */
	bool gone;    /* the server has closed the connection of one who thinks */
	uint16_t url; /* that is asked for */
	uint16_t pages_left;
	uint32_t sent;         /* bytes of the request */
	uint32_t input_length; /* bytes of a head that is not complete */
	int32_t next;
	int64_t due_ns; /* the page; of a hostile visitor: the arrival */
	char *input;
	struct response response;
};

/* All of a client. */
struct visitors {
	const struct crowd_plan *plan;
	io_loop *loop;
	int64_t now_ns;
	struct visitor *visitor;
	int32_t vacant; /* the first place of nobody; -1: none */
	unsigned open;
	uint32_t source;  /* number of the next source address */
	uint32_t hostile; /* hostile visitors so far: they share a few addresses */
	struct tally *tally;
	char *input; /* VISITORS_READ_MAX bytes, so that a head fits */
};

enum { VISITORS_READ_MAX = 256 * 1024 };

/* Makes places for the visitors of the client of that number, without a loop. 0; -1 with ENOMEM: visitors_free() is
 * still to be called. */
int visitors_init(struct visitors *visitors, const struct crowd_plan *plan, unsigned number);

/* Nobody is there. */
void visitors_free(struct visitors *visitors);

/* A visitor who was due at due_ns arrives now. */
void visitors_arrive(struct visitors *visitors, enum kind kind, int64_t due_ns);

/* The loop says that a visitor's connection is ready, or that its deadline has passed. */
void visitor_write(struct visitors *visitors, struct visitor *visitor);
void visitor_read(struct visitors *visitors, struct visitor *visitor);
void visitor_timeout(struct visitors *visitors, struct visitor *visitor);

/* Everybody leaves; pages that are under way do not count. */
void visitors_leave(struct visitors *visitors);

#endif
