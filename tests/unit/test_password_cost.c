/* test_password_cost.c - which hashes are cheap enough to be checked. */
#include "gatling/site/access/password_cost.h"

#include "tests/unit/check.h"

static enum password_cost cost_of(const char *setting, size_t length) {
	unsigned kinds = 0;
	enum password_cost cost = password_cost(setting, length, &kinds);
	assert_int_equal(cost == PASSWORD_UNMEASURED, kinds != 0);
	assert_int_equal(cost == PASSWORD_UNMEASURED, !password_cost_measured(kinds));
	if (cost != PASSWORD_UNMEASURED) return cost;
	password_cost_measure(kinds);
	assert_true(password_cost_measured(kinds));
	return password_cost(setting, length, &kinds);
}

static void nothing_is_known_before_it_is_measured(void **state) {
	(void)state;
	static const char *const settings[] = {"$2b$10$abcdefghijklmnopqrstuu", "$6$saltsalt", "$y$j9T$saltsaltsaltsalt$",
										   "ab.cdefghijkl"};
	for (size_t i = 0; i < COUNT(settings); i++) {
		unsigned kinds = 0;
		assert_int_equal(password_cost(settings[i], 8, &kinds), PASSWORD_UNMEASURED);
		assert_int_not_equal(kinds, 0);
	}
	assert_true(password_cost_measured(0));
}

static void what_programs_write_by_default_is_affordable(void **state) {
	(void)state;
	static const char *const settings[] = {"$2y$05$abcdefghijklmnopqrstuu", /* htpasswd(1) */
										   "$2b$10$abcdefghijklmnopqrstuu",
										   "$5$saltsalt$x",
										   "$6$saltsalt$x",
										   "$1$saltsalt$x",
										   "$apr1$saltsalt$x",
										   "{SHA}x",
										   "$sha1$24680$saltsalt$x",
										   "$md5$saltsalt$x",
										   "$md5,rounds=10000$saltsalt$x",
										   "$y$j9T$saltsaltsaltsalt$x",
										   "$gy$j9T$saltsaltsaltsalt$x",
										   "$7$CU..../....saltsalt$x",
										   "_J9..saltabcdefghijk",
										   "ab.cdefghijkl",
										   "*",
										   "!$2b$31$abcdefghijklmnopqrstuu"};
	for (size_t i = 0; i < COUNT(settings); i++)
		if (cost_of(settings[i], 8) != PASSWORD_AFFORDABLE) fail_msg("%s", settings[i]);
}

static void what_takes_long_or_is_not_understood_is_dear(void **state) {
	(void)state;
	static const char *const settings[] = {"$2b$17$abcdefghijklmnopqrstuu",
										   "$2b$31$abcdefghijklmnopqrstuu",
										   "$2b$99$abcdefghijklmnopqrstuu",
										   "$2b$00$abcdefghijklmnopqrstuu",
										   "$2b$",
										   "$2$",
										   "$5$rounds=99999999$saltsalt$x",
										   "$6$rounds=18446744073709551616$saltsalt$x",
										   "$6$rounds=-1$saltsalt$x",
										   "$sha1$4294967295$saltsalt$x",
										   "$sha1$x$saltsalt$x",
										   "$md5,rounds=4294963199$saltsalt$x",
										   "$md5$rounds=999999999$saltsalt$$x",
										   "$md5$rounds=x$saltsalt$x",
										   "$md5,saltsalt$x",
										   "$md5x",
										   "$2b$+9$abcdefghijklmnopqrstuu",
										   "$6$rounds= 99999$saltsalt$x",
										   "$7$",
										   "$7$FU..../....saltsalt$x",
										   "$7$AU..../zzzzsaltsalt$x",
										   "$7$AU....",
										   "$y$",
										   "$y$j",
										   "$y$jXT$saltsaltsaltsalt$x",
										   "$y$j9T/$saltsaltsaltsalt$x",
										   "$y$k9T$saltsaltsaltsalt$x",
										   "$y$j9z$saltsaltsaltsalt$x",
										   "$gy$jXT$saltsaltsaltsalt$x",
										   "_zzzzsaltabcdefghijk",
										   "_",
										   "$argon2id$v=19$m=65536,t=3,p=4$salt$x",
										   "$",
										   "$9$x"};
	for (size_t i = 0; i < COUNT(settings); i++)
		if (cost_of(settings[i], 8) != PASSWORD_DEAR) fail_msg("%s", settings[i]);
}

/* Nobody may make a check long with a long password. */
static void a_long_password_costs_more(void **state) {
	(void)state;
	char setting[64] = "";
	unsigned rounds = 1000;
	do snprintf(setting, sizeof setting, "$6$rounds=%u$saltsalt$x", rounds += rounds / 8);
	while (cost_of(setting, PASSWORD_USUAL) == PASSWORD_AFFORDABLE);
	snprintf(setting, sizeof setting, "$6$rounds=%u$saltsalt$x", rounds / 2);
	assert_int_equal(cost_of(setting, PASSWORD_USUAL), PASSWORD_AFFORDABLE);
	assert_int_equal(cost_of(setting, 511), PASSWORD_DEAR);
}

/* A verdict stays the same, whoever measures meanwhile, and there is one cost from which on all are dear. */
static void verdicts_do_not_flap(void **state) {
	(void)state;
	enum { COSTS = 32, ROUNDS = 5 };
	enum password_cost first[COSTS];
	char setting[64];
	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned i = 4; i < COSTS; i++) {
			snprintf(setting, sizeof setting, "$2b$%02u$abcdefghijklmnopqrstuu", i);
			const enum password_cost cost = cost_of(setting, 8);
			if (round == 0) first[i] = cost;
			assert_int_equal(cost, first[i]);
			if (i > 4 && first[i - 1] == PASSWORD_DEAR) assert_int_equal(cost, PASSWORD_DEAR);
		}
		password_cost_measure(~0U);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_before_it_is_measured),
		cmocka_unit_test(what_programs_write_by_default_is_affordable),
		cmocka_unit_test(what_takes_long_or_is_not_understood_is_dear),
		cmocka_unit_test(a_long_password_costs_more),
		cmocka_unit_test(verdicts_do_not_flap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
