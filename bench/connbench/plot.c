/* plot.c - see plot.h. */
#include "bench/connbench/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/platform.h"
#include "bench/usage.h"

extern char **environ;

struct plot {
	const char *path;
	FILE *to; /* gnuplot */
	pid_t gnuplot;
	unsigned long rows;
};

static const char begin[] = "set terminal svg size 900,520 font 'sans-serif,14' background 'white'\n"
							"set title '%s'\n"
							"set xlabel 'connections open'\n"
							"set ylabel 'us'\n"
							"set logscale y\n"
							"set format x '%%.0f'\n"
							"set border 3\n"
							"set tics nomirror\n"
							"set grid lc rgb '#e4e4e4'\n"
							"set key outside bottom center horizontal\n"
							"set datafile missing '0'\n"
							"$rows << EOD\n";
static const char end[] = "EOD\n"
						  "plot $rows using 1:2 with points pt 7 ps 0.25 lc rgb '#0072b2' title 'connecting', \\\n"
						  "     $rows using 1:3 with points pt 7 ps 0.25 lc rgb '#d55e00' title 'a request on it', \\\n"
						  "     $rows using 1:($4 > 0 ? $4 : NaN) with points pt 7 ps 0.25 lc rgb '#009e73' "
						  "title 'a request on an idle one'\n"
						  "exit\n"; /* processes that hold connections have the pipe open, too */

/* Starts gnuplot with its stdin and stdout, in a process group of its own, so that an interrupt does not end it.
 * Returns an error number. */
static int start(pid_t *pid, int in, int out) {
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char *const arguments[] = {(char *)"gnuplot", NULL};
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	const int error = posix_spawnp(pid, arguments[0], &actions, &attributes, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return error;
}

struct plot *plot_begin(const char *path, const char *title) {
	static struct plot plot; /* a program draws one */
	struct plot *const p = &plot;
	int ends[2];
	const int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out == -1) usage_refuse("--plot: cannot write '%s': %s", path, strerror(errno));
	if (platform_pipe(ends) == -1) usage_refuse("--plot: %s", strerror(errno));
	const int error = start(&p->gnuplot, ends[0], out);
	if (error) {
		(void)unlink(path);
		usage_refuse("--plot takes gnuplot(1): %s", strerror(error));
	}
	close(ends[0]);
	close(out);
	p->path = path;
	p->to = fdopen(ends[1], "w");
	if (!p->to) usage_refuse("--plot: %s", strerror(errno));
	fprintf(p->to, begin, title);
	return p;
}

static double us(int64_t ns) { return (double)ns / 1e3; }

void plot_row(struct plot *p, const struct plot_row *row) {
	p->rows++;
	fprintf(p->to, "%u %.3f %.3f %.3f\n", row->open, us(row->connect), us(row->whole_new), us(row->whole_idle));
}

int plot_end(struct plot *p) {
	int status = 0;
	fputs(p->rows ? end : "EOD\nexit\n", p->to);
	const int failed = fclose(p->to);
	(void)waitpid(p->gnuplot, &status, 0);
	if (!p->rows) (void)unlink(p->path);
	const int result = failed || status ? -1 : 0;
	if (result == -1) fprintf(stderr, "%s: gnuplot could not draw %s\n", usage_program, p->path);
	return result;
}
