/* password_cost.h - how long it takes to check a password. Whoever may write a hash could otherwise keep the thread
 * that checks passwords busy for days, for all sites. The limit is time on this machine, so each kind of hash is
 * measured once, with a cheap setting (crypt(5)); from that follows what all settings of the kind cost, for as long as
 * the process runs. */
#ifndef GATLING_SITE_ACCESS_PASSWORD_COST_H
#define GATLING_SITE_ACCESS_PASSWORD_COST_H

#include <stdbool.h>
#include <stddef.h>

enum {
	PASSWORD_CPU_MS = 500,                   /* processor time of one check */
	PASSWORD_MEMORY_MAX = 256 * 1024 * 1024, /* bytes */
	PASSWORD_USUAL = 64                      /* bytes of a password, up to which all take as long */
};

enum password_cost {
	PASSWORD_DEAR,       /* it takes too long or too much memory, or that cannot be known */
	PASSWORD_UNMEASURED, /* its kind has to be measured first */
	PASSWORD_AFFORDABLE
};

/* Returns what it costs to check a password of that many bytes with a hash or setting of crypt(3). *kinds gets a bit
 * for the kind of the hash, if that is unmeasured. Thread-safe. */
enum password_cost password_cost(const char *setting, size_t length, unsigned *kinds);

/* Returns whether a check takes much memory, up to PASSWORD_MEMORY_MAX. */
bool password_cost_takes_memory(const char *setting);

/* Returns whether all of these kinds have been measured. Thread-safe. */
bool password_cost_measured(unsigned kinds);

/* Measures kinds of hashes, which takes about 100 ms of processor time for each: not for a loop. A kind for which there
 * is no memory stays unmeasured. Thread-safe. */
void password_cost_measure(unsigned kinds);

#endif
