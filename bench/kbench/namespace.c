/* namespace.c - see kbench.h. In its own namespace, a benchmark finds no connections, TIME_WAITs or settings of others,
 * and leaves none behind. */
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/kbench/kbench.h"

#define PORTS "/proc/sys/net/ipv4/ip_local_port_range"

static bool bring_up_loopback(void) {
	struct ifreq request = {.ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	strcpy(request.ifr_name, "lo");
	bool up = fd != -1 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
	if (fd != -1) close(fd);
	return up;
}

bool namespace_enter(void) {
	if (unshare(CLONE_NEWNET) == -1 && unshare(CLONE_NEWUSER | CLONE_NEWNET) == -1) return false;
	return bring_up_loopback();
}

unsigned namespace_read_numbers(const char *path, unsigned *number, unsigned most) {
	char line[128] = "", *at = line, *end;
	unsigned n = 0;
	FILE *in = fopen(path, "r");
	if (in && !fgets(line, sizeof line, in)) *line = '\0';
	if (in) fclose(in);
	for (; n < most; n++, at = end) {
		number[n] = (unsigned)strtoul(at, &end, 10);
		if (end == at) break;
	}
	return n;
}

int namespace_set_ports(unsigned first, unsigned last) {
	FILE *out = fopen(PORTS, "w");
	if (!out) return -1;
	fprintf(out, "%u %u\n", first, last);
	return fclose(out);
}

int namespace_ports(unsigned *first, unsigned *last) {
	unsigned range[2];
	if (namespace_read_numbers(PORTS, range, 2) != 2) return -1;
	*first = range[0];
	*last = range[1];
	return 0;
}
