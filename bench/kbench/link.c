/* link.c - see link.h. A pair of veth(4) is first named wireN. If another interface is to lie over it, it gets the
 * addresses 10.78.N.E. */
#include "bench/kbench/link.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { COMMAND_LENGTH_MAX = 1024, READY_MS = 5000, WIREGUARD_PORT = 51820 };

#define RENAME "link set wire%1$d name link%1$d\n"
#define UNDERLAY "addr add 10.78.%1$d.%2$d/24 dev wire%1$d\nlink set wire%1$d up\n"
#define TUNNEL(type) UNDERLAY "link add link%1$d type " type " local 10.78.%1$d.%2$d remote 10.78.%1$d.%3$d\n"

static const struct link_kind {
	const char *name;
	const char *lines; /* for ip(8), with numbers of the link and of its ends: makes linkN */
	uint32_t setting;  /* of ethtool(8), set to value; 0: none */
	uint32_t value;
} kinds[] = {
	{"veth", RENAME, 0, 0},
	{"jumbo", RENAME "link set link%1$d mtu 9000\n", 0, 0},
	{"no-tso", RENAME, ETHTOOL_STSO, 0},
	{"gro", RENAME, ETHTOOL_SGRO, 1}, /* off by default in veth(4) */
	{"no-checksum", RENAME, ETHTOOL_STXCSUM, 0},
	{"bridge", "link add link%1$d type bridge\nlink set wire%1$d master link%1$d up\n", 0, 0},
	{"vlan", "link set wire%1$d up\nlink add link wire%1$d name link%1$d type vlan id 77\n", 0, 0},
	{"vxlan", TUNNEL("vxlan id 77%1$d dstport 4789"), 0, 0},
	{"gre", TUNNEL("gre"), 0, 0},
	{"ipip", TUNNEL("ipip"), 0, 0},
	{"wireguard", UNDERLAY "link add link%1$d type wireguard\n", 0, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Keys for these benchmarks only; they are public. */
static const char *const private_key[] = {"yEZLl7uvhK7qW1xhkKvL+w5FyGzst0LQHehBA+A/P9c=",
										  "XgvXEy8ebtsg14BWM/iwVtJN/Wx4JfCjwOeiiMINuiY="};
static const char *const public_key[] = {"iMBg1cWFHLYVjumo+5++lACZpATAk3cK9DmeudpLJ3I=",
										 "EesqLvqWyBNNu0yd+VtgFZVRLMoYZ9p/LuWwXVMZxkU="};

const struct link_kind *link_kind_of(const char *name) {
	for (int i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
	return NULL;
}

const char *link_names(void) {
	static char text[128];
	for (int i = 0, n = 0; i < KINDS; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", i ? ", " : "", kinds[i].name);
	return text;
}

const char *link_name(const struct link_kind *kind) { return kind->name; }
bool link_plain(const struct link_kind *kind) { return kind == kinds; }

/* Runs a program in this namespace, with text as its input. Returns 0 or -1. */
static int feed(const char *program, const char *text) {
	FILE *out = popen(program, "w");
	if (!out) return -1;
	fputs(text, out);
	return pclose(out) == 0 ? 0 : -1;
}

static int ip(const char *format, ...) {
	char lines[COMMAND_LENGTH_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(lines, sizeof lines, format, arguments);
	va_end(arguments);
	return feed("ip -batch - >/dev/null 2>&1", lines);
}

static int set(const char *interface, uint32_t setting, uint32_t value) {
	struct ethtool_value asked = {.cmd = setting, .data = value};
	struct ifreq request = {.ifr_data = (char *)&asked};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
	int result = ioctl(fd, SIOCETHTOOL, &request);
	close(fd);
	return result;
}

static int set_up_wireguard(int link, int end) {
	char text[COMMAND_LENGTH_MAX], command[64];
	snprintf(command, sizeof command, "wg setconf link%d /proc/self/fd/0 >/dev/null 2>&1", link);
	snprintf(text, sizeof text,
			 "[Interface]\nPrivateKey = %s\nListenPort = %d\n"
			 "[Peer]\nPublicKey = %s\nEndpoint = 10.78.%d.%d:%d\nAllowedIPs = 0.0.0.0/0, ::/0\n",
			 private_key[end - 1], WIREGUARD_PORT + link, public_key[2 - end], link, 3 - end, WIREGUARD_PORT + link);
	return feed(command, text);
}

int link_make(int link, pid_t peer) {
	return ip("link add wire%d type veth peer name wire%d netns %d\n", link, link, (int)peer);
}

int link_set_up(const struct link_kind *kind, int link, int end) {
	char interface[IF_NAMESIZE];
	snprintf(interface, sizeof interface, "link%d", link);
	if (ip("link set lo up\n") == -1 || ip(kind->lines, link, end, 3 - end) == -1) return -1;
	if (kind->setting && set(interface, kind->setting, kind->value) == -1) return -1;
	if (strcmp(kind->name, "wireguard") == 0 && set_up_wireguard(link, end) == -1) return -1;
	return ip(
		"addr add 10.77.%1$d.%2$d/24 dev link%1$d\naddr add fd77:%1$d::%2$d/64 dev link%1$d\nlink set link%1$d up\n",
		link, end);
}

int link_route(int link, int end, int other) {
	return ip("route add 10.77.%1$d.0/24 via 10.77.%2$d.%3$d\nroute add fd77:%1$d::/64 via fd77:%2$d::%3$d\n", other,
			  link, 3 - end);
}

/* The kernel takes up to a second to notice that a link is up, and IPv6 waits for that. */
void link_await(int link) {
	const struct timespec pause_time = {.tv_nsec = 1000000};
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(request.ifr_name, sizeof request.ifr_name, "link%d", link);
	for (int ms = 0; ms < READY_MS; ms++) {
		if (ioctl(fd, SIOCGIFFLAGS, &request) == -1 || request.ifr_flags & IFF_RUNNING) break;
		nanosleep(&pause_time, NULL);
	}
	close(fd);
}
