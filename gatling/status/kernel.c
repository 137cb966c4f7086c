/* kernel.c - see kernel.h. */
#include "gatling/status/kernel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gatling/base/platform.h"

enum { TEXT_MAX = 16 * 1024 /* bytes of a file */ };

/* Reads a file from its start, as an empty text if that fails. Returns the end of the text. */
static char *read_text(int fd, char text[TEXT_MAX]) {
	ssize_t n = fd == -1 ? 0 : pread(fd, text, TEXT_MAX - 1, 0);
	text += n > 0 ? n : 0;
	*text = '\0';
	return text;
}

/* Moves *at to the next word of the line. Returns its length, or 0 if there is none. */
static size_t next_word(const char **at) {
	*at += strspn(*at, " ");
	return strcspn(*at, " \n");
}

/* Returns the number of that name in /proc/net/netstat or snmp, or 0 if it is not there. These files have a line of
 * names and one of numbers for each table, both of which begin with the name of the table. */
static uint64_t number_of(const char *text, const char *table, const char *name) {
	const char *names = strstr(text, table), *end = names ? strchr(names, '\n') : NULL;
	const char *numbers = end ? strstr(end, table) : NULL;
	if (!numbers) return 0;
	for (size_t length, skipped; (length = next_word(&names)) && (skipped = next_word(&numbers));) {
		if (length == strlen(name) && strncmp(names, name, length) == 0) return strtoull(numbers, NULL, 10);
		names += length;
		numbers += skipped;
	}
	return 0;
}

/* Returns the number behind a word in the line of TCP, in /proc/net/sockstat. */
static uint64_t number_behind(const char *text, const char *word) {
	const char *line = strstr(text, "TCP:"), *found = line ? strstr(line, word) : NULL;
	return found ? strtoull(found + strlen(word), NULL, 10) : 0;
}

static int open_text(const char *path) { return open(path, O_RDONLY | O_CLOEXEC); }

void kernel_open(struct kernel_view *v) {
	struct platform_tcp tcp = platform_tcp();
	*v = (struct kernel_view){.netstat = open_text("/proc/net/netstat"),
							  .snmp = open_text("/proc/net/snmp"),
							  .sockstat = open_text("/proc/net/sockstat"),
							  .memory = open_text("/proc/self/statm"),
							  .pressure = tcp.memory > 0 ? (uint64_t)tcp.memory : 0};
	kernel_read(v, NULL, 0, v->first);
}

void kernel_close(struct kernel_view *v) {
	const int file[] = {v->netstat, v->snmp, v->sockstat, v->memory};
	for (unsigned i = 0; i < sizeof file / sizeof *file; i++)
		if (file[i] != -1) close(file[i]);
}

static void read_queues(const int *sockets, unsigned count, uint64_t *value) {
	value[KERNEL_QUEUE] = value[KERNEL_QUEUE_MAX] = 0;
	for (unsigned i = 0; i < count; i++) {
		int64_t limit, length = platform_queue(sockets[i], &limit);
		if (length < 0 || ((uint64_t)length < value[KERNEL_QUEUE] && value[KERNEL_QUEUE_MAX])) continue;
		value[KERNEL_QUEUE] = (uint64_t)length;
		value[KERNEL_QUEUE_MAX] = (uint64_t)limit;
	}
}

/* Returns how many connections were dropped at these sockets. Sets *told to whether the kernel tells. */
static uint32_t sum_drops(const int *sockets, unsigned count, bool *told) {
	uint32_t sum = 0;
	*told = false;
	for (unsigned i = 0; i < count; i++) {
		const int64_t drops = platform_listen_drops(sockets[i]);
		*told |= drops >= 0;
		if (drops > 0) sum += (uint32_t)drops;
	}
	return sum;
}

void kernel_watch(struct kernel_view *v, const int *sockets, unsigned count) {
	v->drops_before = sum_drops(sockets, count, &v->own);
}

/* Those that the socket has counted are kept when it is left to others. */
static uint64_t drops_of(struct kernel_view *v, const int *sockets, unsigned count) {
	bool told;
	const uint32_t sum = sum_drops(sockets, count, &told);
	if (told) v->drops = sum - v->drops_before;
	return v->drops;
}

void kernel_read(struct kernel_view *v, const int *sockets, unsigned count, uint64_t value[VALUES]) {
	char text[2 * TEXT_MAX];
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	read_queues(sockets, count, value);
	read_text(v->snmp, read_text(v->netstat, text));
	for (unsigned i = WORKER_VALUES; i < VALUES; i++)
		if (value_row[i].table) value[i] = number_of(text, value_row[i].table, value_row[i].number) - v->first[i];
	if (v->own) value[KERNEL_DROPS] = drops_of(v, sockets, count);
	read_text(v->sockstat, text);
	value[KERNEL_TCP_MEMORY] = number_behind(text, " mem ") * page;
	value[KERNEL_TCP_MEMORY_MAX] = v->pressure;
	read_text(v->memory, text);
	value[KERNEL_RESIDENT] = strtoull(text + strcspn(text, " "), NULL, 10) * page; /* its second number */
}
