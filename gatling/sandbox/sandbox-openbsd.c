/* sandbox-openbsd.c - see sandbox.h: pledge(2) and unveil(2). */
#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gatling/sandbox/sandbox.h"

static void note(struct sandbox *s, const char *name, int result) { sandbox_note(s, name, result == -1 ? errno : 0); }

void sandbox_refuse_privileges(void) {
	const struct rlimit none = {0};
	(void)setrlimit(RLIMIT_CORE, &none);
}

void sandbox_drop_capabilities(struct sandbox *s) { (void)s; }

void sandbox_limit_files(struct sandbox *s) {
	if (!s->on) sandbox_note(s, "unveil", SANDBOX_OFF);
	else if (unveil(s->beneath ? "." : "/", "r") == -1) note(s, "unveil", -1);
	else note(s, "unveil (read-only)", unveil(NULL, NULL));
}

/* "inet" and "unix" are for accept(2) and the options of sockets, "recvfd" for what the broker sends, and
 * "sendfd" for a successor. */
void sandbox_limit_calls(struct sandbox *s) {
	if (!s->on) sandbox_note(s, "pledge", SANDBOX_OFF);
	else note(s, "pledge", pledge("stdio rpath inet unix sendfd recvfd", NULL));
}

const char *sandbox_refuses(void) { return NULL; }

void sandbox_enter_keeper(bool runs_programs) {
	(void)runs_programs;
	sandbox_refuse_privileges();
}

void sandbox_enter_lookout(bool on) {
	sandbox_refuse_privileges();
	if (on) (void)pledge("stdio rpath", NULL);
}

void sandbox_enter_broker(bool on) {
	sandbox_refuse_privileges();
	if (on) (void)pledge("stdio rpath wpath cpath sendfd", NULL);
}

const char *sandbox_enter_connector(bool on, const struct account *user) {
	sandbox_refuse_privileges();
	const char *wrong = user ? account_become_with_groups(user) : NULL;
	if (on) (void)pledge("stdio rpath unix sendfd", NULL);
	return wrong;
}

const char *sandbox_enter_resolver(bool on, const struct account *user) {
	sandbox_refuse_privileges();
	const char *wrong = user ? account_become_with_groups(user) : NULL;
	if (on) (void)pledge("stdio rpath dns", NULL);
	return wrong;
}
