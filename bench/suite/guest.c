/* guest.c - the init of a virtual machine that bench/suite/vm boots. Runs each line of /plan and sends its output,
 * after a line "=NAME STATUS BYTES", over qemu's debug console, which needs no driver. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONSOLE_PORT = 0xe9, DESCRIPTORS = 1000000, WORDS_MAX = 32, LINE_LENGTH_MAX = 1024 };

#define OUTPUT "/tmp/output"

static void hand_out(const void *bytes, size_t length) { outsb(CONSOLE_PORT, bytes, length); }

static bool is_module(const char *path) {
	size_t length = strlen(path);
	return length > 3 && strcmp(path + length - 3, ".ko") == 0;
}

/* Loads a module into the kernel. Returns 0 or errno. */
static int load(const char *module) {
	int file = open(module, O_RDONLY | O_CLOEXEC);
	int failed = file == -1 || syscall(SYS_finit_module, file, "", 0) == -1 ? errno : 0;
	if (file != -1) close(file);
	return failed;
}

static int run_command(char **word) {
	int status = -1;
	pid_t child = fork();
	if (child == 0) {
		int out = open(OUTPUT, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		if (out != -1 && dup2(out, STDOUT_FILENO) != -1) execv(word[0], word);
		_exit(127);
	}
	if (child != -1) waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void hand_out_output(const char *name, int status) {
	static char block[1 << 16];
	char frame[LINE_LENGTH_MAX];
	struct stat st = {0};
	int in = open(OUTPUT, O_RDONLY);
	(void)stat(OUTPUT, &st);
	hand_out(frame, (size_t)snprintf(frame, sizeof frame, "=%s %d %lld\n", name, status, (long long)st.st_size));
	for (ssize_t n; in != -1 && (n = read(in, block, sizeof block)) > 0;) hand_out(block, (size_t)n);
	if (in != -1) close(in);
	(void)unlink(OUTPUT);
}

/* Executes a line "NAME PROGRAM ARGUMENT..." or "NAME MODULE.ko", with blanks between the words. */
static void execute(char *line) {
	char *word[WORDS_MAX], *at = NULL;
	int words = 0;
	for (char *w = strtok_r(line, " \n", &at); w && words < WORDS_MAX - 1; w = strtok_r(NULL, " \n", &at))
		word[words++] = w;
	word[words] = NULL;
	if (words < 2) return;
	fprintf(stderr, "guest: %s\n", word[0]);
	hand_out_output(word[0], is_module(word[1]) ? load(word[1]) : run_command(word + 1));
}

int main(void) {
	char line[LINE_LENGTH_MAX];
	struct rlimit limit = {.rlim_cur = DESCRIPTORS, .rlim_max = DESCRIPTORS};
	(void)mount("proc", "/proc", "proc", 0, NULL);
	(void)mount("sys", "/sys", "sysfs", 0, NULL);
	(void)mount("dev", "/dev", "devtmpfs", 0, NULL);
	(void)mount("tmp", "/tmp", "tmpfs", 0, NULL);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	FILE *plan = fopen("/plan", "r");
	if (!plan || ioperm(CONSOLE_PORT, 1, 1) == -1) {
		fprintf(stderr, "guest: %s\n", strerror(errno));
	} else {
		while (fgets(line, sizeof line, plan)) execute(line);
		fprintf(stderr, "guest: done\n");
	}
	sync();
	reboot(RB_AUTOBOOT); /* qemu ends here */
	return 1;
}
