/* link.h - a link between two network namespaces: a pair of veth(4), or what lies over one. By ip(8), and wg(8).
 *
 * Each end has the interface linkN, with the addresses 10.77.N.E and fd77:N::E, where N is the number of the link, from
 * 0 on, and E that of the end, 1 or 2. */
#ifndef KBENCH_LINK_H
#define KBENCH_LINK_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns the kind of that name; NULL: there is none. link_names(): all of them, as "a, b"; the first is veth itself.
 */
const struct link_kind *link_kind_of(const char *name);
const char *link_names(void);
const char *link_name(const struct link_kind *kind);

/* Whether it is nothing but veth(4). */
bool link_plain(const struct link_kind *kind);

/* Makes the pair: one end here, the other one in the namespace of a process. 0, or -1. */
int link_make(int link, pid_t peer);

/* Sets an end up, in its namespace. 0, or -1: the kernel or a program for this kind is missing. */
int link_set_up(const struct link_kind *kind, int link, int end);

/* Has what is for the other end of `other` sent over this link. 0, or -1. */
int link_route(int link, int end, int other);

/* Waits until the link is up. */
void link_await(int link);

#endif
