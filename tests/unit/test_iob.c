/* test_iob.c - batches: everything is sent in order, in whatever pieces and however little the socket takes, and every
 * part is released once. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/iob.h"
#include "io/internal.h"
#include "io/window.h"

enum { MOST = 256 * 1024 }; /* bytes that one call sends at most */
#include "tests/unit/check.h"
#include "tests/unit/dice.h"

enum { FILE_SIZE = 3000000, PARTS = 500, EXPECTED_MAX = 64 << 20 };

static io_loop *loop;
static int out, in;       /* a socket pair; out is adopted and wanted for writing */
static io_tasks *readers; /* of files that may be on another machine */
static int file;          /* FILE_SIZE bytes, those of content */
static char content[FILE_SIZE];
static char *expected; /* the bytes that should arrive at in */
static size_t expected_length, got_length;
static int released[PARTS];

static char *end_of_expected(size_t length) {
	char *at = expected + expected_length;
	expected_length += length;
	assert_true(expected_length <= EXPECTED_MAX);
	return at;
}

static int set_up(void **state) {
	(void)state;
	int end[2], small = 4096;
	char name[] = "/tmp/gatling-iob-XXXXXX";
	loop = io_loop_new();
	readers = io_tasks_new(loop, 0, 2);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end), 0);
	out = end[0];
	in = end[1];
	setsockopt(out, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	assert_int_equal(io_fd(loop, out, loop), 0);
	for (size_t i = 0; i < FILE_SIZE; i++) content[i] = (char)(i * 2654435761U >> 24);
	file = mkstemp(name);
	unlink(name);
	assert_int_equal(write(file, content, FILE_SIZE), FILE_SIZE);
	expected = malloc(EXPECTED_MAX);
	expected_length = got_length = 0;
	memset(released, 0, sizeof released);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	if (io_cookie(loop, out)) io_close(loop, out);
	close(in);
	close(file);
	free(expected);
	assert_true(io_tasks_stop(readers, -1));
	io_windows_collect(readers);
	io_tasks_free(readers);
	io_loop_free(loop);
	return 0;
}

static void release(void *owner) { ++*(int *)owner; }

/* Reads at most limit bytes, and compares them. */
static void receive(size_t limit) {
	static char buffer[1 << 16];
	while (limit) {
		ssize_t n = read(in, buffer, limit < sizeof buffer ? limit : sizeof buffer);
		if (n <= 0) return;
		assert_true(got_length + (size_t)n <= expected_length);
		assert_memory_equal(buffer, expected + got_length, (size_t)n);
		got_length += (size_t)n;
		limit -= (size_t)n;
	}
}

/* If reading from memory was interrupted, a thread reads the file, as if it were not in memory. */
static void await_reader(void) {
	while (io_reading(loop, out)) {
		assert_int_equal(io_wait(loop, 10000), 0);
		io_windows_collect(readers);
	}
}

/* Sends the whole batch, while the other side reads at most reads bytes at a time. */
static void send_all(iob *b, size_t reads) {
	uint64_t sent = 0, left = iob_bytesleft(b);
	for (;;) {
		uint64_t before = sent;
		enum iob_result result = iob_send(loop, out, b, MOST, IO_LAST, &sent);
		assert_int_not_equal(result, IOB_FAILED);
		assert_true(sent - before <= MOST);
		assert_int_equal(iob_bytesleft(b), left - sent);
		if (result == IOB_DONE) break;
		receive(reads);
		await_reader();
	}
	receive(SIZE_MAX);
	assert_int_equal(sent, left);
	assert_int_equal(got_length, expected_length);
	assert_int_equal(iob_parts(b), 0);
}

static void add_copy(iob *b, const char *text) {
	memcpy(end_of_expected(strlen(text)), text, strlen(text));
	assert_int_equal(iob_addcopy(b, text, strlen(text)), 0);
}

static void add_buffer(iob *b, size_t at, size_t length, int *count) {
	memcpy(end_of_expected(length), content + at, length);
	assert_int_equal(iob_addbuf(b, content + at, length, count ? release : NULL, count), 0);
}

static void add_file(iob *b, size_t at, size_t length, int *count) {
	memcpy(end_of_expected(length), content + at, length);
	assert_int_equal(iob_addfile(b, (struct iob_file){.fd = file}, (off_t)at, length, count ? release : NULL, count),
					 0);
}

/* --- sources --- */

struct maker {
	size_t at, end; /* offsets in content */
	size_t most;    /* bytes at a time */
	int error;      /* reported at the end */
	int fills, releases;
	size_t largest; /* size that was requested */
};

static ssize_t fill(void *owner, char *buffer, size_t size) {
	struct maker *m = owner;
	assert_int_equal(m->releases, 0);
	m->fills++;
	if (size > m->largest) m->largest = size;
	if (size > m->end - m->at) size = m->end - m->at;
	if (size > m->most) size = m->most;
	if (!size) {
		errno = m->error;
		return -1;
	}
	memcpy(buffer, content + m->at, size);
	m->at += size;
	return (ssize_t)size;
}

static void release_maker(void *owner) { ((struct maker *)owner)->releases++; }

/* Adds a source of length bytes that makes at most `most` bytes at a time. */
static void add_source(iob *b, struct maker *m, size_t at, size_t length, size_t most) {
	*m = (struct maker){.at = at, .end = at + length, .most = most, .error = ENODATA};
	memcpy(end_of_expected(length), content + at, length);
	assert_int_equal(iob_addsource(b, length, fill, release_maker, m, 0), 0);
}

static void parts_of_all_kinds_come_out_in_order(void **state) {
	struct maker first, second;
	(void)state;
	iob *b = iob_new();
	add_copy(b, "head");
	add_copy(b, " and more");
	add_buffer(b, 10, 1000, &released[0]);
	add_file(b, 5, 100, &released[1]);
	add_file(b, 0, 5, &released[2]);
	add_source(b, &first, 7, 300, SIZE_MAX);
	add_source(b, &second, 0, 1, SIZE_MAX);
	add_copy(b, "tail");
	add_buffer(b, 0, 1, NULL);
	assert_int_equal(iob_bytesleft(b), expected_length);
	send_all(b, SIZE_MAX);
	for (int i = 0; i < 3; i++) assert_int_equal(released[i], 1);
	assert_true(first.releases == 1 && second.releases == 1);
	iob_free(b);
}

static void a_batch_may_be_used_again(void **state) {
	(void)state;
	iob *b = iob_new();
	for (int i = 0; i < 20; i++) {
		add_copy(b, "head");
		add_file(b, 7, 50000, &released[0]);
		send_all(b, 3000);
	}
	assert_int_equal(released[0], 20);
	iob_free(b);
}

static void what_is_written_in_place_comes_out_as_far_as_it_was_committed(void **state) {
	(void)state;
	iob *b = iob_new();
	add_copy(b, "a");
	char *room = iob_reserve(b, 3000);
	assert_non_null(room);
	memset(room, 'b', 3000);
	memset(end_of_expected(2000), 'b', 2000);
	iob_commit(b, 2000);
	assert_non_null(iob_reserve(b, 100));
	iob_commit(b, 0);
	add_copy(b, "c");
	assert_int_equal(iob_parts(b), 1); /* neighbours are joined */
	send_all(b, SIZE_MAX);
	assert_non_null(iob_reserve(b, 100));
	iob_commit(b, 0);
	assert_int_equal(iob_parts(b), 0);
	iob_free(b);
}

static void large_parts_are_sent_a_share_at_a_time(void **state) {
	(void)state;
	iob *b = iob_new();
	int large = 4 << 20;
	uint64_t sent = 0;
	setsockopt(out, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
	for (int i = 0; i < 4; i++) add_file(b, 0, FILE_SIZE, NULL);
	for (int i = 0; i < 4; i++) add_buffer(b, 0, FILE_SIZE, NULL);
	assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_AGAIN);
	assert_true(sent <= MOST);
	/* if the socket did not refuse it, it is continued in the next turn */
	receive(SIZE_MAX);
	assert_int_equal(io_wantwrite(loop, out), 0);
	while (iob_bytesleft(b)) {
		assert_int_equal(io_wait(loop, 10000), 0);
		assert_int_equal(io_canwrite(loop), out);
		assert_int_not_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_FAILED);
		receive(SIZE_MAX);
	}
	assert_int_equal(got_length, expected_length);
	iob_free(b);
}

static void empty_parts_are_released_at_once(void **state) {
	(void)state;
	iob *b = iob_new();
	uint64_t sent = 0;
	add_buffer(b, 0, 0, &released[0]);
	add_file(b, 0, 0, &released[1]);
	add_copy(b, "");
	assert_true(released[0] == 1 && released[1] == 1);
	assert_int_equal(iob_parts(b), 0);
	assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_DONE);
	assert_int_equal(sent, 0);
	iob_free(b);
}

static void what_is_not_sent_is_released_once_too(void **state) {
	(void)state;
	iob *b = iob_new();
	uint64_t sent = 0;
	for (int i = 0; i < 20; i++) add_buffer(b, 0, 100000, &released[i]);
	assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_AGAIN);
	iob_reset(b);
	for (int i = 0; i < 20; i++) assert_int_equal(released[i], 1);
	assert_int_equal(iob_bytesleft(b), 0);
	assert_int_equal(iob_addfile(b, (struct iob_file){.fd = file}, 0, 1, release, &released[20]), 0);
	iob_free(b);
	assert_int_equal(released[20], 1);
}

static void limits_are_kept_and_what_is_refused_is_released(void **state) {
	(void)state;
	iob *b = iob_new();
	int parts = 0;
	static int count;
	count = 0;
	while (iob_addbuf(b, "x", 1, release, &count) == 0) parts++;
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(parts, IOB_PART_LIMIT);
	assert_int_equal(count, 1);
	assert_int_equal(iob_addcopy(b, "y", 1), -1);
	assert_int_equal(iob_bytesleft(b), parts);
	iob_reset(b);
	assert_int_equal(count, IOB_PART_LIMIT + 1);

	assert_null(iob_reserve(b, IOB_COPY_LIMIT + 1));
	assert_int_equal(errno, ENOMEM);
	assert_non_null(iob_reserve(b, IOB_COPY_LIMIT));
	iob_commit(b, IOB_COPY_LIMIT);
	assert_int_equal(iob_addcopy(b, "y", 1), -1);
	assert_int_equal(errno, ENOMEM);
	iob_free(b);
}

static void a_file_that_ends_too_soon_fails_and_is_not_padded(void **state) {
	(void)state;
	iob *b = iob_new();
	uint64_t sent = 0;
	add_copy(b, "head");
	add_file(b, FILE_SIZE - 10, 10, &released[0]);
	assert_int_equal(iob_addfile(b, (struct iob_file){.fd = file}, FILE_SIZE, 10, release, &released[1]), 0);
	enum iob_result result = iob_send(loop, out, b, MOST, IO_LAST, &sent);
	assert_int_equal(result, IOB_FAILED);
	assert_int_equal(errno, EIO);
	receive(SIZE_MAX);
	assert_int_equal(got_length, expected_length);
	iob_free(b);
	assert_true(released[0] == 1 && released[1] == 1);
}

/* The ways to send a file that may change. */
enum file_way { BY_REFERENCE, READ, MAPPED, BY_THREADS, FILE_WAYS };

static struct iob_file file_sent(enum file_way way, char *map, iob_unchanged *unchanged) {
	return (struct iob_file){.fd = file,
							 .map = way == MAPPED ? map : NULL,
							 .unchanged = unchanged,
							 .copied = way != BY_REFERENCE,
							 .readers = way == BY_THREADS ? readers : NULL};
}

/* A file that appears unchanged that many times. */
struct watched {
	int looks, unchanged;
};

static bool unchanged(void *owner, const struct stat *now) {
	struct watched *w = owner;
	assert_true(S_ISREG(now->st_mode));
	return w->looks++ < w->unchanged;
}

static void a_file_that_may_change_comes_out_whole(void **state) {
	(void)state;
	char *map = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, file, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	for (enum file_way way = 0; way < FILE_WAYS; way++) {
		static const size_t length[] = {1, IOB_FILE_PIECE, IOB_FILE_PIECE + 1, FILE_SIZE - 5};
		for (size_t i = 0; i < COUNT(length); i++) {
			struct watched w = {.unchanged = INT_MAX};
			struct iob_file f = file_sent(way, map, unchanged);
			iob *b = iob_new();
			add_copy(b, "head");
			memcpy(end_of_expected(length[i]), content + 5, length[i]);
			assert_int_equal(iob_addfile(b, f, 5, length[i], NULL, &w), 0);
			add_copy(b, "tail");
			send_all(b, SIZE_MAX);
			assert_true(w.looks >= 1);
			iob_free(b);
		}
	}
	munmap(map, FILE_SIZE);
}

static void the_end_of_a_file_that_has_changed_is_not_sent(void **state) {
	(void)state;
	char *map = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, file, 0);
	static const size_t length[] = {1, IOB_FILE_PIECE, 3 * IOB_FILE_PIECE};
	for (int way = 0; way <= FILE_WAYS; way++) { /* the last one: iob_take() */
		for (size_t i = 0; i < COUNT(length); i++) {
			static char buffer[3 * IOB_FILE_PIECE];
			struct watched w = {.unchanged = 0};
			struct iob_file f = file_sent(way, map, unchanged);
			iob *b = iob_new();
			enum iob_result result = IOB_AGAIN;
			uint64_t sent = 0;
			assert_int_equal(iob_addfile(b, f, 0, length[i], NULL, &w), 0);
			memcpy(end_of_expected(length[i]), content, length[i]);
			while (way < FILE_WAYS && result == IOB_AGAIN) {
				result = iob_send(loop, out, b, MOST, IO_LAST, &sent);
				assert_true(result == IOB_AGAIN || (result == IOB_FAILED && errno == EIO));
				receive(SIZE_MAX);
				await_reader();
			}
			if (way == FILE_WAYS) assert_true(iob_take(loop, out, b, buffer, length[i]) == -1 && errno == EIO);
			assert_true(got_length < expected_length);
			got_length = expected_length = 0;
			iob_free(b);
		}
	}
	munmap(map, FILE_SIZE);
}

static void what_a_slow_reader_has_not_taken_does_not_change_with_the_file(void **state) {
	(void)state;
	static char other[FILE_SIZE];
	uint64_t sent = 0;
	iob *b = iob_new();
	add_file(b, 0, FILE_SIZE, NULL);
	assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_AGAIN);
	await_reader();
	const int64_t until_ms = io_now(loop) + IOB_SLOW_MS;
	while (io_now(loop) < until_ms) (void)io_wait(loop, (int)(until_ms - io_now(loop)));
	receive(SIZE_MAX);
	assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_AGAIN);
	assert_true(sent > got_length);
	assert_int_equal(pwrite(file, other, FILE_SIZE, 0), FILE_SIZE);
	receive(SIZE_MAX);
	assert_int_equal(got_length, sent);
	iob_free(b);
}

static void a_file_that_was_mapped_and_has_become_shorter_fails(void **state) {
	(void)state;
	char *map = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, file, 0);
	assert_int_equal(ftruncate(file, 0), 0);
	for (int head = 0; head < 2; head++) {
		for (enum file_way way = 0; way < BY_THREADS; way++) {
			iob *b = iob_new();
			uint64_t sent = 0;
			if (head) add_copy(b, "head");
			assert_int_equal(iob_addfile(b, file_sent(way, map, NULL), 0, FILE_SIZE, NULL, NULL), 0);
			assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_FAILED);
			assert_int_equal(errno, EIO);
			iob_free(b);
		}
	}
	munmap(map, FILE_SIZE);
}

/* Sends the batch until it fails with EIO. */
static void send_until_it_fails(iob *b) {
	uint64_t sent = 0;
	enum iob_result result;
	while ((result = iob_send(loop, out, b, MOST, IO_LAST, &sent)) == IOB_AGAIN) {
		receive(SIZE_MAX);
		await_reader();
	}
	assert_true(result == IOB_FAILED && errno == EIO);
}

static void a_file_that_threads_read_and_that_is_shorter_fails(void **state) {
	(void)state;
	for (size_t left = 1500; left -= 500;) {
		iob *b = iob_new();
		memcpy(end_of_expected(left), content, left);
		assert_int_equal(ftruncate(file, (off_t)left), 0);
		assert_int_equal(iob_addfile(b, file_sent(BY_THREADS, NULL, NULL), 0, FILE_SIZE, NULL, NULL), 0);
		send_until_it_fails(b);
		receive(SIZE_MAX);
		iob_free(b);
	}
	assert_int_equal(got_length, expected_length);
}

static void what_threads_have_read_counts_as_memory_until_it_is_sent(void **state) {
	(void)state;
	uint64_t sent = 0;
	iob *b = iob_new();
	const size_t before = iob_memory(b);
	memcpy(end_of_expected(FILE_SIZE), content, FILE_SIZE);
	assert_int_equal(iob_addfile(b, file_sent(BY_THREADS, NULL, NULL), 0, FILE_SIZE, NULL, NULL), 0);
	assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_AGAIN);
	assert_in_range(iob_memory(b), before + IO_WINDOW_LEAST, before + IO_WINDOW + 1024);
	await_reader();
	send_all(b, SIZE_MAX);
	assert_int_equal(iob_memory(b), before);
	assert_int_equal(loop->window_bytes, 0);
	iob_free(b);
}

static void a_batch_is_freed_while_a_thread_reads_for_it(void **state) {
	(void)state;
	uint64_t sent = 0;
	iob *b = iob_new();
	assert_int_equal(iob_addfile(b, file_sent(BY_THREADS, NULL, NULL), 0, FILE_SIZE, NULL, NULL), 0);
	assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_AGAIN);
	iob_free(b);
	assert_true(io_tasks_stop(readers, -1));
	io_windows_collect(readers);
	assert_int_equal(loop->window_bytes, 0);
}

static void a_peer_that_is_gone_fails_the_batch(void **state) {
	(void)state;
	iob *b = iob_new();
	uint64_t sent = 0;
	signal(SIGPIPE, SIG_IGN);
	close(in);
	in = dup(out);
	add_copy(b, "x");
	assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_FAILED);
	assert_int_equal(errno, EPIPE);
	iob_reset(b);
	add_file(b, 0, 10, NULL);
	assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_FAILED);
	assert_int_equal(errno, EPIPE);
	iob_free(b);
}

static void any_mixture_comes_out_whole(void **state) {
	static struct maker maker[PARTS];
	(void)state;
	iob *b = iob_new();
	for (int round = 0; round < 150; round++) {
		int parts = 1 + (int)dice(100);
		expected_length = got_length = 0;
		memset(released, 0, sizeof released);
		memset(maker, 0, sizeof maker);
		for (int i = 0; i < parts; i++) {
			size_t length = dice(dice(4) ? 2000 : 60000), at = dice(FILE_SIZE - 60000);
			switch (dice(4)) {
			case 3:
				add_source(b, &maker[i], at, length, 1 + dice(70000));
				released[i] = 1;
				break;
			case 0:
				length = length % 2000;
				memcpy(end_of_expected(length), content + at, length);
				assert_int_equal(iob_addcopy(b, content + at, length), 0);
				released[i] = 1;
				break;
			case 1: add_buffer(b, at, length, &released[i]); break;
			default: add_file(b, at, length, &released[i]); break;
			}
		}
		send_all(b, 1 + dice(5000));
		for (int i = 0; i < parts; i++) assert_true(released[i] == 1 && (!maker[i].end || maker[i].releases == 1));
	}
	iob_free(b);
}

static void what_is_taken_is_what_would_be_sent(void **state) {
	static char buffer[2 * FILE_SIZE];
	struct maker maker;
	(void)state;
	for (size_t step = 1; step < 200000; step = step * 7 + 3) {
		size_t taken = 0;
		expected_length = 0;
		memset(released, 0, sizeof released);
		iob *b = iob_new();
		add_copy(b, "head");
		add_buffer(b, 10, 1000, &released[0]);
		add_file(b, 5, 100000, &released[1]);
		add_source(b, &maker, 3, 100001, 30000);
		add_copy(b, "tail");
		while (iob_bytesleft(b)) {
			ssize_t n = iob_take(loop, out, b, buffer + taken, step);
			assert_true(n > 0 && (size_t)n <= step);
			taken += (size_t)n;
			assert_int_equal(iob_bytesleft(b), expected_length - taken);
		}
		assert_int_equal(taken, expected_length);
		assert_memory_equal(buffer, expected, taken);
		assert_int_equal(released[0] + released[1] + maker.releases, 3);
		assert_true(maker.largest <= step); /* it writes directly to our buffer */
		iob_free(b);
	}
}

static void bytes_in_memory_are_used_where_they_are(void **state) {
	char one;
	size_t length;
	(void)state;
	expected_length = 0;
	iob *b = iob_new();
	assert_null(iob_front(b, &length));
	add_copy(b, "head");
	add_buffer(b, 10, 1000, &released[0]);
	add_file(b, 5, 1, &released[1]);
	add_copy(b, "tail");
	for (size_t at = 0; at < expected_length; at += length) {
		const char *front = iob_front(b, &length);
		if (at == 4 + 1000) {
			assert_null(front);
			length = 1;
			assert_int_equal(iob_take(loop, out, b, &one, 1), 1);
			continue;
		}
		assert_memory_equal(front, expected + at, length);
		if (length > 3) length -= 2; /* leave the rest for the next time */
		assert_int_equal(released[0], at > 4 + 998);
		iob_drop(b, length);
		assert_int_equal(iob_bytesleft(b), expected_length - at - length);
	}
	assert_null(iob_front(b, &length));
	assert_int_equal(released[0] + released[1], 2);
	iob_free(b);
}

static void what_is_taken_of_a_file_that_ends_too_soon_fails(void **state) {
	char buffer[100];
	(void)state;
	iob *b = iob_new();
	assert_int_equal(iob_addfile(b, (struct iob_file){.fd = file}, FILE_SIZE - 10, 100, release, &released[0]), 0);
	assert_int_equal(iob_take(loop, out, b, buffer, sizeof buffer), -1);
	assert_int_equal(errno, EIO);
	iob_free(b);
	assert_int_equal(released[0], 1);
}

static void a_large_source_is_made_a_piece_at_a_time(void **state) {
	struct maker m;
	(void)state;
	iob *b = iob_new();
	add_copy(b, "head");
	add_source(b, &m, 0, 1000000, SIZE_MAX);
	assert_int_equal(m.fills, 0);
	send_all(b, 5000);
	assert_int_equal(m.largest, IOB_SOURCE_PIECE);
	assert_int_equal(m.fills, (1000000 + IOB_SOURCE_PIECE - 1) / IOB_SOURCE_PIECE);
	iob_free(b);
	assert_int_equal(m.releases, 1);
}

static void a_source_behind_many_buffers_keeps_its_turn(void **state) {
	struct maker m[2];
	(void)state;
	iob *b = iob_new();
	for (int count = IO_HEAD_PARTS - 1; count <= IO_HEAD_PARTS + 1; count++) {
		for (int i = 0; i < count; i++) add_buffer(b, (size_t)i, 5, NULL);
		add_source(b, &m[0], 5, 1000, 300);
		add_source(b, &m[1], 9, 1000, 1);
		for (int i = 0; i < count; i++) add_buffer(b, (size_t)i, 5, NULL);
		send_all(b, SIZE_MAX);
		assert_true(m[0].releases == 1 && m[1].releases == 1);
	}
	iob_free(b);
}

static void a_source_is_sent_a_share_at_a_time(void **state) {
	struct maker m;
	(void)state;
	for (uint64_t most = 1; most < 100000; most = most * 9 + 2) {
		uint64_t length = most * 50 < 300000 ? most * 50 : 300000, sent = 0;
		iob *b = iob_new();
		add_copy(b, "head");
		add_source(b, &m, 0, length, SIZE_MAX);
		add_copy(b, "tail");
		while (iob_bytesleft(b)) {
			uint64_t before = sent;
			assert_int_not_equal(iob_send(loop, out, b, most, IO_LAST, &sent), IOB_FAILED);
			assert_true(sent - before <= most);
			receive(SIZE_MAX);
		}
		assert_int_equal(got_length, expected_length);
		assert_int_equal(m.releases, 1);
		iob_free(b);
	}
}

static void what_is_made_ahead_is_taken_too(void **state) {
	static char buffer[400000];
	struct maker m;
	uint64_t sent = 0;
	size_t taken = 0;
	(void)state;
	iob *b = iob_new();
	add_source(b, &m, 0, 200000, SIZE_MAX);
	assert_int_equal(iob_send(loop, out, b, 1001, IO_LAST, &sent), IOB_AGAIN);
	assert_int_equal(sent, 1001);
	receive(SIZE_MAX);
	while (iob_bytesleft(b)) {
		ssize_t n = iob_take(loop, out, b, buffer + taken, 40001);
		assert_true(n > 0);
		taken += (size_t)n;
	}
	assert_int_equal(sent + taken, expected_length);
	assert_memory_equal(buffer, expected + sent, taken);
	iob_free(b);
	assert_int_equal(m.releases, 1);
}

static void a_source_that_fails_fails_the_batch_behind_what_it_made(void **state) {
	static const int cases[][2] = {{EILSEQ, EILSEQ}, {EAGAIN, EIO}};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct maker m = {.end = 1500, .most = 1000, .error = cases[i][0]};
		uint64_t sent = 0;
		iob *b = iob_new();
		add_copy(b, "head");
		memcpy(end_of_expected(1500), content, 1500);
		assert_int_equal(iob_addsource(b, 2000, fill, release_maker, &m, 0), 0);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_FAILED);
			assert_int_equal(errno, cases[i][1]);
		}
		assert_int_equal(m.fills, 3);
		receive(SIZE_MAX);
		assert_int_equal(got_length, expected_length);
		assert_int_equal(m.releases, 0);
		iob_reset(b);
		assert_int_equal(m.releases, 1);
		iob_free(b);
		assert_int_equal(m.releases, 1);
	}
}

static void a_source_that_fails_at_once_does_not_keep_back_what_is_before_it(void **state) {
	struct maker m = {.error = ENODATA};
	uint64_t sent = 0;
	char buffer[10];
	(void)state;
	iob *b = iob_new();
	add_copy(b, "head");
	assert_int_equal(iob_addsource(b, 1, fill, release_maker, &m, 0), 0);
	assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_FAILED);
	assert_int_equal(errno, ENODATA);
	receive(SIZE_MAX);
	assert_int_equal(got_length, expected_length);
	assert_int_equal(iob_take(loop, out, b, buffer, sizeof buffer), -1);
	assert_int_equal(errno, ENODATA);
	iob_free(b);
	assert_int_equal(m.releases, 1);
}

static void a_source_that_is_not_sent_is_released_once_too(void **state) {
	struct maker m[3], none = {0}, refused = {0};
	uint64_t sent = 0;
	(void)state;
	iob *b = iob_new();
	for (int i = 0; i < 3; i++) add_source(b, &m[i], 0, 1000000, SIZE_MAX);
	assert_int_equal(iob_send(loop, out, b, MOST, IO_LAST, &sent), IOB_AGAIN);
	assert_int_equal(iob_addsource(b, 0, fill, release_maker, &none, 0), 0);
	assert_int_equal(none.releases, 1);
	while (iob_addbuf(b, "x", 1, NULL, NULL) == 0) continue;
	assert_int_equal(iob_addsource(b, 1, fill, release_maker, &refused, 0), -1);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(refused.releases, 1);
	iob_reset(b);
	for (int i = 0; i < 3; i++) assert_int_equal(m[i].releases, 1);
	iob_free(b);
}

int main(void) {
#define WITH_SOCKETS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_SOCKETS(parts_of_all_kinds_come_out_in_order),
		WITH_SOCKETS(a_batch_may_be_used_again),
		WITH_SOCKETS(what_is_written_in_place_comes_out_as_far_as_it_was_committed),
		WITH_SOCKETS(large_parts_are_sent_a_share_at_a_time),
		WITH_SOCKETS(empty_parts_are_released_at_once),
		WITH_SOCKETS(what_is_not_sent_is_released_once_too),
		WITH_SOCKETS(limits_are_kept_and_what_is_refused_is_released),
		WITH_SOCKETS(a_file_that_ends_too_soon_fails_and_is_not_padded),
		WITH_SOCKETS(a_file_that_may_change_comes_out_whole),
		WITH_SOCKETS(the_end_of_a_file_that_has_changed_is_not_sent),
		WITH_SOCKETS(what_a_slow_reader_has_not_taken_does_not_change_with_the_file),
		WITH_SOCKETS(a_file_that_was_mapped_and_has_become_shorter_fails),
		WITH_SOCKETS(a_file_that_threads_read_and_that_is_shorter_fails),
		WITH_SOCKETS(what_threads_have_read_counts_as_memory_until_it_is_sent),
		WITH_SOCKETS(a_batch_is_freed_while_a_thread_reads_for_it),
		WITH_SOCKETS(a_peer_that_is_gone_fails_the_batch),
		WITH_SOCKETS(any_mixture_comes_out_whole),
		WITH_SOCKETS(what_is_taken_is_what_would_be_sent),
		WITH_SOCKETS(bytes_in_memory_are_used_where_they_are),
		WITH_SOCKETS(what_is_taken_of_a_file_that_ends_too_soon_fails),
		WITH_SOCKETS(a_large_source_is_made_a_piece_at_a_time),
		WITH_SOCKETS(a_source_behind_many_buffers_keeps_its_turn),
		WITH_SOCKETS(a_source_is_sent_a_share_at_a_time),
		WITH_SOCKETS(what_is_made_ahead_is_taken_too),
		WITH_SOCKETS(a_source_that_fails_fails_the_batch_behind_what_it_made),
		WITH_SOCKETS(a_source_that_fails_at_once_does_not_keep_back_what_is_before_it),
		WITH_SOCKETS(a_source_that_is_not_sent_is_released_once_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
