/* client.c - see client.h. run_turn() is one turn of the loop; visitor.c handles the visitors. */
#include "bench/crowd/client.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench/crowd/visitor.h"
#include "bench/httpbench/load/schedule.h"
#include "bench/machine.h"

enum { ARRIVE_BATCH = 64 /* visitors who arrive in a turn, so that the others are served, too */ };
static const int64_t second_ns = 1000000000;

struct client {
	struct visitors visitors;
	struct schedule schedule;
	int64_t tick_ns, end_ns; /* the end of this second, and that of the run */
	/* shared with the main thread */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct tally *second; /* the seconds to be collected, if full is set */
	bool full, started, ended;
	atomic_bool stop;
};

/* Hands over the second that has passed, once the main thread has collected the one before. */
static void hand_over(struct client *c) {
	struct visitors *vs = &c->visitors;
	vs->tally->open = vs->open;
	pthread_mutex_lock(&c->mutex);
	while (c->full && !atomic_load(&c->stop)) pthread_cond_wait(&c->changed, &c->mutex);
	tally_add(c->second, vs->tally);
	c->full = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
	tally_reset(vs->tally);
	c->tick_ns += second_ns;
}

static void arrive(struct client *c) {
	for (int i = 0; i < ARRIVE_BATCH; i++) {
		int64_t due_ns = schedule_due(&c->schedule);
		if (due_ns > c->visitors.now_ns || due_ns >= c->end_ns) return;
		schedule_advance(&c->schedule);
		visitors_arrive(&c->visitors, (enum kind)schedule_target(&c->schedule), due_ns);
	}
}

static bool run_turn(struct client *c) {
	struct visitors *vs = &c->visitors;
	int64_t due_ns = schedule_due(&c->schedule);
	if (io_waituntil(vs->loop, due_ns < c->tick_ns ? due_ns : c->tick_ns) == -1) return false;
	vs->now_ns = io_now_ns(vs->loop);
	arrive(c);
	for (int fd; (fd = io_canwrite(vs->loop)) != -1;) visitor_write(vs, io_cookie(vs->loop, fd));
	for (int fd; (fd = io_canread(vs->loop)) != -1;) visitor_read(vs, io_cookie(vs->loop, fd));
	for (int fd; (fd = io_timedout(vs->loop)) != -1;) visitor_timeout(vs, io_cookie(vs->loop, fd));
	if (vs->now_ns >= c->tick_ns) hand_over(c);
	return !atomic_load(&c->stop) && c->tick_ns <= c->end_ns;
}

static void *client_thread(void *argument) {
	struct client *c = argument;
	(void)io_private_descriptors(NULL, 0); /* if it fails, the threads share the limit of descriptors */
	c->visitors.loop = io_loop_new();
	while (c->visitors.loop && run_turn(c)) {}
	visitors_leave(&c->visitors);
	io_loop_free(c->visitors.loop);
	pthread_mutex_lock(&c->mutex);
	c->ended = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
	return NULL;
}

/* --- for the main thread --- */

void client_free(struct client *c) {
	if (!c) return;
	if (c->started) pthread_join(c->thread, NULL);
	visitors_free(&c->visitors);
	free(c->second);
	free(c);
}

struct client *client_new(const struct crowd_plan *plan, unsigned number) {
	struct client *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->second = calloc(1, sizeof *c->second);
	schedule_start(&c->schedule, &plan->arrivals, number, 0);
	if (visitors_init(&c->visitors, plan, number) == 0 && c->second) return c;
	client_free(c);
	errno = ENOMEM;
	return NULL;
}

int client_start(struct client *c, int64_t started_ns) {
	const struct crowd_plan *plan = c->visitors.plan;
	c->schedule.started_ns = started_ns;
	c->tick_ns = started_ns + second_ns;
	c->end_ns = started_ns + plan->warm_up_ns + plan->duration_ns;
	errno = pthread_create(&c->thread, NULL, client_thread, c);
	c->started = errno == 0;
	return c->started ? 0 : -1;
}

bool client_collect(struct client *c, struct tally *sum) {
	pthread_mutex_lock(&c->mutex);
	while (!c->full && !c->ended) pthread_cond_wait(&c->changed, &c->mutex);
	bool full = c->full;
	if (full) {
		tally_add(sum, c->second);
		tally_reset(c->second);
		c->full = false;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->mutex);
	return full;
}

void client_stop(struct client *c) {
	pthread_mutex_lock(&c->mutex);
	atomic_store(&c->stop, true);
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
}
