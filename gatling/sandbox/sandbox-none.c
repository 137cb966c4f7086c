/* sandbox-none.c - see sandbox.h: for a system that only has the limit of core files. */
#include <stddef.h>
#include <sys/resource.h>

#include "gatling/sandbox/sandbox.h"

void sandbox_refuse_privileges(void) {
	const struct rlimit none = {0};
	(void)setrlimit(RLIMIT_CORE, &none);
}

void sandbox_drop_capabilities(struct sandbox *s) { (void)s; }
void sandbox_limit_files(struct sandbox *s) { (void)s; }
void sandbox_limit_calls(struct sandbox *s) { (void)s; }

const char *sandbox_refuses(void) { return NULL; }

void sandbox_enter_keeper(bool runs_programs) {
	(void)runs_programs;
	sandbox_refuse_privileges();
}

void sandbox_enter_lookout(bool on) {
	(void)on;
	sandbox_refuse_privileges();
}

void sandbox_enter_broker(bool on) {
	(void)on;
	sandbox_refuse_privileges();
}

const char *sandbox_enter_connector(bool on, const struct account *user) {
	(void)on;
	sandbox_refuse_privileges();
	return user ? account_become_with_groups(user) : NULL;
}

const char *sandbox_enter_resolver(bool on, const struct account *user) { return sandbox_enter_connector(on, user); }
