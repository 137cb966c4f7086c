/* log_sink.c - see log_sink.h. */
#include "gatling/log/log_sink.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes a whole text, also to a non-blocking descriptor. Returns the bytes written: fewer on an error. */
static size_t write_text(int fd, const char *text, size_t length) {
	size_t written = 0;
	while (written < length) {
		ssize_t n = write(fd, text + written, length - written);
		if (n > 0) {
			written += (size_t)n;
		} else if (n == -1 && errno == EAGAIN) {
			struct pollfd p = {.fd = fd, .events = POLLOUT};
			(void)poll(&p, 1, -1);
		} else if (n != -1 || errno != EINTR) {
			break;
		}
	}
	return written;
}

/* Writes the rest of a line. Returns false if that fails: nothing else may follow the start of a line. */
static bool write_rest(struct log_sink *s) {
	const size_t n = write_text(s->file.fd, s->rest, s->rest_length);
	s->rest_length -= n;
	if (n) memmove(s->rest, s->rest + n, s->rest_length);
	return s->rest_length == 0;
}

/* Keeps the rest of a line. Returns its length. */
static size_t keep_rest(struct log_sink *s, struct log_queue *of, const char *start, size_t length) {
	const char *newline = memchr(start, '\n', length);
	s->rest_length = (size_t)(newline + 1 - start);
	s->rest_of = of;
	memcpy(s->rest, start, s->rest_length);
	return s->rest_length;
}

unsigned long log_sink_write(struct log_sink *s, struct log_queue *of, const char *text, size_t length) {
	size_t written = write_rest(s) ? write_text(s->file.fd, text, length) : 0;
	if (written && text[written - 1] != '\n') written += keep_rest(s, of, text + written, length - written);
	unsigned long lost = 0;
	for (size_t i = written; i < length; i++) lost += text[i] == '\n';
	return lost;
}

int log_sink_reopen(struct log_sink *s, struct log_queue **lost) {
	struct stat old = {0}, new = {0};
	*lost = NULL;
	(void)write_rest(s);
	(void)fstat(s->file.fd, &old); /* both succeed on an open descriptor */
	if (log_file_open(&s->file) == -1) return -1;
	(void)fstat(s->file.fd, &new);
	if (!s->rest_length || (old.st_dev == new.st_dev &&old.st_ino == new.st_ino)) return 0;
	*lost = s->rest_of;
	s->rest_length = 0;
	return 0;
}

struct log_queue *log_sink_close(struct log_sink *s) {
	struct log_queue *lost = write_rest(s) ? NULL : s->rest_of;
	s->rest_length = 0;
	log_file_close(&s->file);
	return lost;
}
