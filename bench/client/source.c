/* source.c - see source.h. */
#include "bench/client/source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/usage.h"

enum { COUNT_BITS_MAX = 24 };

/* Returns the last 32 bits of an address. */
static unsigned char *tail_of(struct sockaddr_storage *address) {
	if (address->ss_family == AF_INET) return (unsigned char *)&((struct sockaddr_in *)address)->sin_addr;
	return ((struct sockaddr_in6 *)address)->sin6_addr.s6_addr + 12;
}

/* Returns the last 32 bits as a number. */
static uint32_t tail_get(struct sockaddr_storage *address) {
	uint32_t tail;
	memcpy(&tail, tail_of(address), sizeof tail);
	return ntohl(tail);
}

static void tail_set(struct sockaddr_storage *address, uint32_t tail) {
	tail = htonl(tail);
	memcpy(tail_of(address), &tail, sizeof tail);
}

int sources_parse(struct sources *s, const char *text) {
	char address[SOURCE_TEXT];
	size_t length = strcspn(text, "/");
	*s = (struct sources){.count = 1};
	if (length >= sizeof address) return -1;
	memcpy(address, text, length);
	address[length] = '\0';
	struct sockaddr_in *in = (struct sockaddr_in *)&s->first;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&s->first;
	int bits;
	if (inet_pton(AF_INET, address, &in->sin_addr) == 1) {
		s->first.ss_family = AF_INET;
		s->length = sizeof *in;
		bits = 32;
	} else if (inet_pton(AF_INET6, address, &in6->sin6_addr) == 1) {
		s->first.ss_family = AF_INET6;
		s->length = sizeof *in6;
		bits = 128;
	} else {
		return -1;
	}
	if (!text[length]) return 0;
	char *end;
	long prefix = strtol(text + length + 1, &end, 10);
	if (end == text + length + 1 || *end || prefix < 0 || prefix > bits) return -1;
	int free_bits = bits - (int)prefix < COUNT_BITS_MAX ? bits - (int)prefix : COUNT_BITS_MAX;
	s->count = UINT32_C(1) << free_bits;
	tail_set(&s->first, tail_get(&s->first) & ~(s->count - 1));
	if (bits == 32 && s->count > 2) {
		tail_set(&s->first, tail_get(&s->first) + 1);
		s->count -= 2;
	}
	return 0;
}

void sources_share(struct sources *s, unsigned rank, unsigned ranks) {
	uint64_t from = ranks > s->count ? rank % s->count : (uint64_t)s->count * rank / ranks;
	uint64_t to = ranks > s->count ? from + 1 : (uint64_t)s->count * (rank + 1) / ranks;
	tail_set(&s->first, tail_get(&s->first) + (uint32_t)from);
	s->count = (uint32_t)(to - from);
}

static struct sockaddr_storage address_of(const struct sources *s, uint32_t number) {
	struct sockaddr_storage address = s->first;
	tail_set(&address, tail_get(&address) + number % s->count);
	return address;
}

void sources_name(const struct sources *s, uint32_t number, char text[SOURCE_TEXT]) {
	const struct sockaddr_storage address = address_of(s, number);
	const void *at = address.ss_family == AF_INET ? (const void *)&((const struct sockaddr_in *)&address)->sin_addr
												  : &((const struct sockaddr_in6 *)&address)->sin6_addr;
	if (!inet_ntop(address.ss_family, at, text, SOURCE_TEXT)) *text = '\0';
}

int sources_bind(const struct sources *s, uint32_t number, int fd) {
	const struct sockaddr_storage address = address_of(s, number);
#ifdef IP_BIND_ADDRESS_NO_PORT
	int on = 1;
	if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) == -1 && errno != ENOPROTOOPT) return -1;
#endif
	return bind(fd, (const struct sockaddr *)&address, s->length);
}

void sources_require(const struct sources *s, int family, const char *url) {
	int fd = -1;
	if (family != s->first.ss_family) errno = EAFNOSUPPORT;
	else fd = socket(family, SOCK_STREAM, 0);
	if (fd == -1 || sources_bind(s, 0, fd) == -1)
		usage_refuse("--source is no address from which this machine reaches %s: %s", url, strerror(errno));
	close(fd);
}
