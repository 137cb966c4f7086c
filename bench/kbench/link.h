/* link.h - a link between two network namespaces: a pair of veth(4), or another interface over one, made by ip(8) and
 * wg(8).
 *
 * Each end has the interface linkN with the addresses 10.77.N.E and fd77:N::E. N is the number of the link, from 0; E
 * that of the end, 1 or 2. */
#ifndef KBENCH_LINK_H
#define KBENCH_LINK_H

#include <stdbool.h>
#include <sys/types.h>

/* link_kind_of() returns the kind with that name, or NULL. link_names() returns all names as "a, b"; the first one is
 * veth itself. */
const struct link_kind *link_kind_of(const char *name);
const char *link_names(void);
const char *link_name(const struct link_kind *kind);

/* Returns whether the kind is veth(4) alone. */
bool link_plain(const struct link_kind *kind);

/* Makes the pair: one end here, the other in the namespace of the process peer. Returns 0 or -1. */
int link_make(int link, pid_t peer);

/* Sets up an end, in its namespace. Returns 0, or -1 if the kernel lacks this kind, or its program is missing. */
int link_set_up(const struct link_kind *kind, int link, int end);

/* Routes what is sent to the link `other` over this link. Returns 0 or -1. */
int link_route(int link, int end, int other);

/* Waits until the link is up. */
void link_await(int link);

#endif
