/* test_cache.c - the files of a worker: which are served, when a change is noticed, and what is given back; virtual
 * hosts. */
#include "tests/unit/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gatling/base/slice.h"
#include "gatling/codec/brotli.h"
#include "gatling/site/cache/answer_cache.h"
#include "gatling/site/cache/cache.h"
#include "gatling/site/site.h"
#include "gatling/upstream/upstream_address.h"

enum { BYTES = 64 * 1024 * 1024, RESOURCES = BYTES / CACHE_RESOURCE_BYTES, GZIP_BYTES = 1 << 20 };

static int root;
static char root_path[32];
static io_loop *loop;
static struct tree tree;
static struct jobs *jobs;
static struct basic_auth *guards;
static struct cache *cache;
static int64_t now_ms;

static void write_file(const char *name, const char *text, mode_t mode) {
	int fd = openat(root, name, O_WRONLY | O_CREAT | O_TRUNC, mode);
	assert_int_not_equal(fd, -1);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void write_zeros(const char *name, off_t size) {
	write_file(name, "", 0644);
	int fd = openat(root, name, O_WRONLY);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
}

static void write_big(const char *name) { write_zeros(name, REPRESENTATION_BODY_MAX + 1); }

/* Finds a file in identity coding, with a reference. Returns 0 or errno. */
static int find(const char *path, struct representation **file) {
	struct resource *resource;
	const struct lookup wanted = {.path = slice_of(path), .prefetched = true};
	int error = cache_find(cache, &wanted, now_ms, &resource);
	if (error) return error;
	if (representation_changed(resource->representation[CODING_IDENTITY])) { /* as answer_file.c does each time */
		cache_drop(cache, resource);
		return find(path, file);
	}
	*file = resource->representation[CODING_IDENTITY];
	representation_retain(*file);
	return 0;
}

static struct representation *found(const char *path) {
	struct representation *file = NULL;
	int error = find(path, &file);
	if (error) fail_msg("%s: %s", path, strerror(error));
	return file;
}

/* Returns a large file, with a reference, when its content has been hashed. */
static struct representation *identified(const char *path) {
	struct resource *resource;
	const struct lookup wanted = {.path = slice_of(path), .prefetched = true};
	assert_int_equal(cache_find(cache, &wanted, now_ms, &resource), 0);
	(void)cache_hash(cache, resource, CODING_IDENTITY, ETAG_AWAITED);
	for (int i = 0; i < 100 && !resource->representation[CODING_IDENTITY]->validators.etag.at; i++) {
		assert_int_equal(io_wait(loop, 100), 0);
		jobs_collect(jobs);
	}
	struct representation *file = found(path);
	assert_non_null(file->validators.etag.at);
	return file;
}

static int open_descriptors(void) {
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (readdir(d)) n++;
	closedir(d);
	return n;
}

static struct cache *cache_over(const struct tree *over, uint64_t gzip_bytes) {
	const struct cache_options options = {.tree = over,
										  .auth = guards,
										  .compressing = jobs,
										  .improving = jobs,
										  .unpacking = jobs,
										  .hashing = jobs,
										  .hashing_large = jobs,
										  .bytes = BYTES,
										  .descriptors = 8,
										  .open = 100,
										  .gzip_bytes = gzip_bytes,
										  .older = -1};
	return cache_new(&options);
}

static int set_up(void **state) {
	(void)state;
	umask(0);
	/* in memory, if possible: a journaling file system takes ten times as long for thousands of files */
	strcpy(root_path, "/dev/shm/gatling-test-XXXXXX");
	if (!mkdtemp(root_path) && !mkdtemp(strcpy(root_path, "/tmp/gatling-test-XXXXXX"))) return -1;
	root = open(root_path, O_RDONLY | O_DIRECTORY);
	tree = (struct tree){.docroot.root = root};
	loop = io_loop_new();
	jobs = jobs_new(loop, 0, 1);
	guards = basic_auth_new(&tree, NULL, jobs);
	cache = cache_over(&tree, GZIP_BYTES);
	now_ms = 1000;
	return root == -1 || !cache;
}

static int tear_down(void **state) {
	(void)state;
	char command[64];
	jobs_free(jobs);
	cache_free(cache);
	basic_auth_free(guards);
	io_loop_free(loop);
	close(root);
	snprintf(command, sizeof command, "rm -r %s", root_path);
	return system(command); // NOLINT(cert-env33-c)
}

static void a_small_file_is_in_memory_with_its_fields(void **state) {
	(void)state;
	write_file("a.html", "hello", 0644);
	struct representation *f = found("a.html");
	assert_int_equal(f->fd, -1);
	assert_int_equal(f->size, 5);
	assert_memory_equal(f->body, "hello", 5);
	assert_memory_equal(f->fields.at, "Content-Length: 5\r\n", f->type_at);
	assert_memory_equal(f->fields.at + f->type_at,
						"Content-Type: text/html; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n",
						f->validators_at - f->type_at);
	representation_release(f);
}

/* Waits until a file that was just written is no longer read again for each request. */
static void settle(void) { usleep((FILE_VERSION_SETTLES_MS + 5) * 1000); }

static void what_is_remembered_of_a_file_is_small(void **state) {
	(void)state;
	write_file("a.html", "x", 0644);
	representation_release(found("a.html"));
	assert_in_range(cache_usage(cache).bytes, 500, 1200);
}

static void a_large_file_is_open_and_found_again_without_opening(void **state) {
	(void)state;
	write_big("big");
	settle();
	struct representation *f = found("big");
	assert_null(f->body);
	assert_int_not_equal(f->fd, -1);
	struct representation *again = found("big");
	assert_ptr_equal(f, again);
	representation_release(f);
	representation_release(again);
}

static void half_of_the_files_that_may_be_sent_can_be_spared(void **state) {
	enum { SENT = (100 - 8) / 2 + 8 }; /* of those in cache_over() */
	(void)state;
	struct representation *sent[SENT];
	char name[16];
	for (int i = 0; i < SENT; i++) {
		assert_true(cache_spares_files(cache));
		snprintf(name, sizeof name, "big-%d", i);
		write_big(name);
		sent[i] = found(name);
	}
	assert_false(cache_spares_files(cache));
	for (int i = 0; i < SENT; i++) representation_release(sent[i]);
}

static void what_is_not_a_world_readable_regular_file_is_refused(void **state) {
	(void)state;
	struct representation *f;
	write_file("secret", "x", 0640);
	assert_int_equal(mkdirat(root, "dir", 0755), 0);
	assert_int_equal(mkfifoat(root, "fifo", 0644), 0);
	assert_int_equal(symlinkat("loop", root, "loop"), 0);
	assert_int_equal(find("secret", &f), EACCES);
	assert_int_equal(find("dir", &f), EISDIR);
	assert_int_equal(find("fifo", &f), EACCES);
	assert_int_equal(find("loop", &f), ELOOP);
	assert_int_equal(find("none", &f), ENOENT);
	assert_int_equal(find("secret/x", &f), ENOTDIR);
}

static void a_link_out_is_followed_or_not_as_told(void **state) {
	(void)state;
	struct representation *f;
	assert_int_equal(symlinkat("/etc/passwd", root, "out"), 0);
	assert_int_equal(symlinkat("in", root, "link"), 0);
	write_file("in", "x", 0644);
	representation_release(found("out"));
	const struct tree inside = {.docroot = {.root = root, .symlinks_inside = true}};
	cache_free(cache);
	cache = cache_over(&inside, GZIP_BYTES);
	assert_int_equal(find("out", &f), EXDEV);
	representation_release(found("link"));
}

/* Changes a file, keeping its size and modification time. */
static void rewrite(const char *name, const char *text) {
	struct stat st;
	assert_int_equal(fstatat(root, name, &st, 0), 0);
	int fd = openat(root, name, O_WRONLY);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	const struct timespec times[2] = {st.st_atim, st.st_mtim};
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static void a_change_is_seen_after_a_second_and_the_old_state_stays_whole(void **state) {
	(void)state;
	write_file("a", "one", 0644);
	settle();
	struct representation *before = found("a");
	rewrite("a", "two");
	now_ms += CACHE_CHECK_MS - 1;
	struct representation *same = found("a");
	assert_ptr_equal(before, same);
	now_ms += 1;
	struct representation *after = found("a");
	assert_memory_equal(before->body, "one", 3);
	assert_memory_equal(after->body, "two", 3);
	assert_false(slice_equal(before->validators.etag, after->validators.etag));
	representation_release(before);
	representation_release(same);
	representation_release(after);
}

static void what_was_read_when_it_had_just_been_written_is_read_again(void **state) {
	(void)state;
	write_file("a", "one", 0644);
	struct representation *first = found("a"), *second = found("a"); /* held, so that its memory is not reused */
	assert_ptr_equal(first, second);
	settle();
	struct representation *third = found("a"), *fourth = found("a");
	assert_ptr_not_equal(second, third);
	assert_ptr_equal(third, fourth);
	representation_release(first);
	representation_release(second);
	representation_release(third);
	representation_release(fourth);
}

static bool is_unwritten(struct representation *f) {
	struct stat st;
	return fstat(f->fd, &st) == 0 && representation_unwritten(f, &st);
}

static void a_file_was_written_to_or_not_whatever_its_names(void **state) {
	(void)state;
	write_big("big");
	struct representation *f = found("big");
	assert_true(is_unwritten(f));
	assert_int_equal(linkat(root, "big", root, "other", 0), 0);
	assert_true(is_unwritten(f));
	assert_int_equal(unlinkat(root, "other", 0), 0);
	write_big("new");
	assert_int_equal(renameat(root, "new", root, "big"), 0);
	assert_true(is_unwritten(f));
	representation_release(f);
	now_ms += CACHE_CHECK_MS;
	settle();
	f = found("big");
	rewrite("big", "same size and time");
	assert_false(is_unwritten(f));
	representation_release(f);
}

static void a_large_file_rewritten_with_the_same_time_has_another_etag(void **state) {
	(void)state;
	write_big("big");
	settle();
	struct representation *before = identified("big");
	rewrite("big", "changed");
	settle();
	now_ms += CACHE_CHECK_MS;
	struct representation *after = identified("big");
	assert_false(slice_equal(before->validators.etag, after->validators.etag));
	representation_release(before);
	representation_release(after);
}

static void the_same_content_has_the_same_etag_whatever_its_name_and_time(void **state) {
	(void)state;
	write_file("a", "same", 0644);
	write_file("b", "same", 0644);
	struct representation *a = found("a"), *b = found("b");
	assert_true(slice_equal(a->validators.etag, b->validators.etag));
	representation_release(a);
	representation_release(b);
}

static void a_file_that_goes_is_gone_after_a_second(void **state) {
	(void)state;
	struct representation *f;
	write_file("a", "x", 0644);
	representation_release(found("a"));
	assert_int_equal(unlinkat(root, "a", 0), 0);
	now_ms += CACHE_CHECK_MS;
	assert_int_equal(find("a", &f), ENOENT);
}

static void no_more_descriptors_are_kept_than_allowed(void **state) {
	(void)state;
	int before = open_descriptors();
	for (int i = 0; i < 50; i++) {
		char name[16];
		snprintf(name, sizeof name, "big%d", i);
		write_big(name);
		representation_release(found(name));
	}
	assert_int_equal(open_descriptors() - before, 8);
	struct representation *oldest = found("big0");
	assert_int_equal(open_descriptors() - before, 8);
	/* a file in use outlives its place in the cache */
	for (int i = 1; i < 20; i++) {
		char name[16];
		snprintf(name, sizeof name, "big%d", i);
		representation_release(found(name));
	}
	assert_int_equal(open_descriptors() - before, 9);
	assert_int_not_equal(fcntl(oldest->fd, F_GETFD), -1);
	representation_release(oldest);
	assert_int_equal(open_descriptors() - before, 8);
}

/* Waits until a file's last change is no longer recent, by the file system's clock. */
static void grow_old(void) { sleep(3); }

static struct representation *refound(const char *path) {
	struct representation *f = found(path);
	representation_release(f);
	return f;
}

static void a_fresh_file_is_read_again_until_it_is_old(void **state) {
	(void)state;
	write_file("a", "one", 0644);
	struct representation *fresh = found("a"); /* held, so that its memory is not reused */
	now_ms += CACHE_CHECK_MS;
	struct representation *again = found("a");
	assert_ptr_not_equal(fresh, again);
	grow_old();
	now_ms += CACHE_CHECK_MS;
	struct representation *old = found("a");
	assert_ptr_not_equal(again, old);
	now_ms += CACHE_CHECK_MS;
	assert_ptr_equal(refound("a"), old);
	representation_release(fresh);
	representation_release(again);
	representation_release(old);
}

static void a_change_of_an_old_file_is_seen(void **state) {
	(void)state;
	write_file("a", "one", 0644);
	write_file("b", "one", 0644);
	write_big("big");
	assert_int_equal(mkdirat(root, "x", 0755), 0);
	assert_int_equal(mkdirat(root, "y", 0755), 0);
	write_big("x/big");
	write_big("y/big");
	assert_int_equal(symlinkat("x", root, "current"), 0);
	grow_old();
	struct representation *a = found("a"), *b = found("b"), *big = identified("big"),
						  *linked = identified("current/big");
	rewrite("a", "two");
	write_file("new", "two", 0644);
	assert_int_equal(renameat(root, "new", root, "b"), 0);
	rewrite("big", "two");
	assert_int_equal(symlinkat("y", root, "next"), 0);
	assert_int_equal(renameat(root, "next", root, "current"), 0);
	settle();
	now_ms += CACHE_CHECK_MS;
	struct representation *a2 = found("a"), *b2 = found("b"), *big2 = identified("big"),
						  *linked2 = identified("current/big");
	assert_memory_equal(a2->body, "two", 3);
	assert_memory_equal(b2->body, "two", 3);
	assert_false(slice_equal(a->validators.etag, a2->validators.etag));
	assert_false(slice_equal(big->validators.etag, big2->validators.etag));
	assert_true(slice_equal(linked->validators.etag, linked2->validators.etag)); /* the content is the same */
	struct representation *all[] = {a, b, big, linked, a2, b2, big2, linked2};
	for (size_t i = 0; i < COUNT(all); i++) representation_release(all[i]);
}

static void write_many(int files, size_t size) {
	static char text[REPRESENTATION_BODY_MAX + 1];
	char name[32];
	memset(text, 'x', size);
	text[size] = '\0';
	for (int i = 0; i < files; i++) {
		snprintf(name, sizeof name, "f%d", i);
		write_file(name, text, 0644);
	}
	settle();
}

/* Finds all of these files. Returns how many are in the cache then. */
static int kept_of(int files) {
	char name[32];
	for (int i = 0; i < files; i++) {
		snprintf(name, sizeof name, "f%d", i);
		refound(name);
	}
	return (int)cache_usage(cache).files;
}

static void no_more_files_are_kept_than_allowed(void **state) {
	(void)state;
	write_many(RESOURCES + 1, 1);
	assert_int_equal(kept_of(RESOURCES), RESOURCES);
	assert_int_equal(kept_of(RESOURCES + 1), RESOURCES);
}

static void no_more_bytes_are_kept_than_allowed(void **state) {
	(void)state;
	int most = BYTES / REPRESENTATION_BODY_MAX;
	write_many(most, REPRESENTATION_BODY_MAX);
	assert_int_equal(kept_of(most * 9 / 10), most * 9 / 10); /* the rest is for fields and other overhead */
	assert_true(kept_of(most) < most && cache_usage(cache).bytes <= BYTES);
}

static void what_was_asked_for_again_is_kept(void **state) {
	(void)state;
	char name[16];
	for (int i = 0; i < 9; i++) {
		snprintf(name, sizeof name, "big%d", i);
		write_big(name);
	}
	settle();
	struct representation *file[9];
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof name, "big%d", i);
		file[i] = found(name);
	}
	refound("big0");
	file[8] = found("big8");
	assert_ptr_equal(refound("big0"), file[0]);
	assert_ptr_not_equal(refound("big1"), file[1]);
	for (int i = 0; i < 9; i++) representation_release(file[i]);
}

static void files_that_are_asked_for_once_do_not_push_out_others(void **state) {
	(void)state;
	enum { FILES = 3 * BYTES / REPRESENTATION_BODY_MAX };
	char name[16];
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "f%d", i);
		write_zeros(name, REPRESENTATION_BODY_MAX);
	}
	settle();
	struct representation *first = found("f0");
	assert_ptr_equal(refound("f0"), first);
	for (int i = 1; i < FILES; i++) {
		snprintf(name, sizeof name, "f%d", i);
		refound(name);
	}
	assert_ptr_equal(refound("f0"), first);
	representation_release(first);
}

static void a_full_cache_keeps_what_is_asked_for_twice(void **state) {
	(void)state;
	write_many(RESOURCES, 1);
	write_file("new", "x", 0644);
	settle();
	assert_int_equal(kept_of(RESOURCES), RESOURCES);
	struct representation *first = found("new"), *second = found("new");
	assert_ptr_not_equal(first, second);
	assert_ptr_equal(refound("new"), second);
	representation_release(first);
	representation_release(second);
}

static void files_that_are_still_sent_take_no_more_memory_than_allowed(void **state) {
	(void)state;
	enum { MOST = CACHE_LOADED_PARTS * BYTES, FILES = MOST / REPRESENTATION_BODY_MAX };
	static struct representation *file[FILES];
	char name[16];
	size_t memory = 0;
	write_file("key.pem", "-----BEGIN PRIVATE KEY-----\n", 0644);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "f%d", i);
		write_zeros(name, REPRESENTATION_BODY_MAX);
	}
	settle();
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "f%d", i);
		file[i] = found(name);
		memory += file[i]->body ? file[i]->size : 0;
	}
	assert_in_range(memory, MOST / 10 * 9, MOST);
	assert_int_not_equal(file[FILES - 1]->fd, -1);
	assert_int_equal(find("key.pem", &file[0]), EACCES); /* which its content tells */
	for (int i = 0; i < FILES; i++) representation_release(file[i]);
	write_file("next", "x", 0644);
	settle();
	assert_non_null(refound("next")->body);
}

static void large_files_do_not_push_out_small_ones(void **state) {
	(void)state;
	char name[16];
	write_file("small", "x", 0644);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "big%d", i);
		write_big(name);
	}
	settle();
	struct representation *small = found("small");
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "big%d", i / 2);
		refound(name);
	}
	assert_ptr_equal(refound("small"), small);
	representation_release(small);
}

static struct resource *resource_at(const char *path) {
	struct resource *resource;
	const struct lookup wanted = {.path = slice_of(path), .prefetched = true};
	assert_int_equal(cache_find(cache, &wanted, now_ms, &resource), 0);
	return resource;
}

/* Keeps the resource for a host and path. */
static void keep(struct answer_cache *answers, struct slice host, struct slice path, struct resource *resource) {
	const struct known_answer known = {.until_ms = freshness_lasts_until(&resource->freshness), .resource = resource};
	answer_cache_keep(answers, host, 80, path, &known);
}

static void an_upstream_is_kept_with_a_reference_and_its_target(void **state) {
	(void)state;
	struct answer_cache *answers = calloc(1, sizeof *answers);
	const struct slice host = SLICE("a.test"), path = SLICE("/a"), none = {0};
	struct slice rest = SLICE("127.0.0.1:80/");
	struct upstream_target *upstream;
	write_file("a", "x", 0644);
	settle();
	assert_null(upstream_target_parse(SLICE("http://"), &rest, &upstream));
	struct known_answer known = {.until_ms = now_ms + 1, .upstream = upstream, .target = SLICE("/b")};
	answer_cache_keep(answers, host, 80, path, &known);
	assert_int_equal(upstream->references, 2);
	const struct known_answer *found = answer_cache_find(answers, host, 80, path, now_ms);
	assert_ptr_equal(found->upstream, upstream);
	assert_null(found->resource);
	assert_true(slice_equal(found->target, SLICE("/b")));
	assert_null(answer_cache_find(answers, host, 80, path, now_ms + 1));
	/* a file takes its place */
	struct resource *a = resource_at("a");
	keep(answers, host, path, a);
	assert_int_equal(upstream->references, 1);
	assert_null(answer_cache_find(answers, host, 80, path, now_ms)->upstream);
	/* and the other way round */
	answer_cache_keep(answers, host, 80, path, &known);
	cache_drop(cache, a);
	assert_ptr_equal(answer_cache_find(answers, host, 80, path, now_ms)->upstream, upstream);
	/* what is too long is not kept */
	char octets[CACHED_ANSWER_OCTETS];
	memset(octets, 'x', sizeof octets);
	known.target = (struct slice){.at = octets, .length = sizeof octets};
	answer_cache_keep(answers, none, 80, path, &known);
	assert_null(answer_cache_find(answers, none, 80, path, now_ms));
	answer_cache_free(answers);
	assert_int_equal(upstream->references, 1);
	upstream_target_release(upstream);
}

static void an_answer_is_kept_while_its_resource_is_valid(void **state) {
	(void)state;
	static struct answer_cache answers;
	char octets[CACHED_ANSWER_OCTETS + 1];
	const struct slice host = SLICE("a.test"), path = SLICE("/a"), other = SLICE("/b"), none = {0};
	const struct slice all = {.at = octets, .length = sizeof octets};
	memset(octets, 'x', sizeof octets);
	write_file("a", "x", 0644);
	write_file("b", "x", 0644);
	settle();
	struct resource *a = resource_at("a");
	assert_int_equal(freshness_lasts_until(&a->freshness), now_ms + CACHE_CHECK_MS);
	keep(&answers, host, path, a);
	assert_ptr_equal(answer_cache_find(&answers, host, 80, path, now_ms)->resource, a);
	assert_ptr_equal(answer_cache_find(&answers, host, 80, path, freshness_lasts_until(&a->freshness) - 1)->resource,
					 a);
	assert_null(answer_cache_find(&answers, host, 80, path, freshness_lasts_until(&a->freshness)));
	assert_null(answer_cache_find(&answers, host, 81, path, now_ms));
	assert_null(answer_cache_find(&answers, host, 80, other, now_ms));
	assert_null(answer_cache_find(&answers, none, 80, path, now_ms));
	/* the same octets, divided in another way, are another request */
	assert_null(answer_cache_find(&answers, SLICE("a.test/"), 80, SLICE("a"), now_ms));
	/* a resource is kept for one request at a time */
	keep(&answers, none, path, a);
	assert_ptr_equal(answer_cache_find(&answers, none, 80, path, now_ms)->resource, a);
	assert_null(answer_cache_find(&answers, host, 80, path, now_ms));
	struct resource *b = resource_at("b");
	keep(&answers, none, path, b);
	assert_ptr_equal(answer_cache_find(&answers, none, 80, path, now_ms)->resource, b);
	cache_drop(cache, a);
	assert_ptr_equal(answer_cache_find(&answers, none, 80, path, now_ms)->resource, b);
	cache_drop(cache, b);
	assert_null(answer_cache_find(&answers, none, 80, path, now_ms));
	b = resource_at("b");
	keep(&answers, host, all, b);
	assert_null(answer_cache_find(&answers, host, 80, all, now_ms));
}

static const struct representation *in(const char *path, enum coding coding) {
	return resource_at(path)->representation[coding];
}

/* Makes a resource in a coding, and waits until it is done. */
static void make(const char *path, enum coding coding) {
	struct resource *resource;
	const struct lookup wanted = {.path = slice_of(path), .prefetched = true};
	assert_int_equal(cache_find(cache, &wanted, now_ms, &resource), 0);
	assert_true(resource->producible >> coding & 1);
	assert_non_null(cache_convert(cache, resource, coding));
	for (int i = 0; i < 100 && resource->producible >> coding & 1; i++) {
		assert_int_equal(io_wait(loop, 100), 0);
		jobs_collect(jobs);
	}
}

static void write_text(const char *name, size_t length, unsigned seed) {
	char *text = malloc(length + 1);
	for (size_t i = 0; i < length; i++) {
		seed = seed * 1103515245 + 12345;
		text[i] = (char)('a' + (seed >> 16) % 16);
	}
	text[length] = '\0';
	write_file(name, text, 0644);
	free(text);
}

static void what_is_compressed_is_dropped_for_what_is_used_later(void **state) {
	(void)state;
	enum { FILES = 5, SIZE = 500000, NAME_ROOM = 32 }; /* each gzip takes more than half of gzip_bytes */
	char name[NAME_ROOM];
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "f%d.txt", i);
		write_text(name, SIZE, (unsigned)i);
		settle();
		make(name, CODING_GZIP);
		const struct representation *gzip = in(name, CODING_GZIP);
		assert_non_null(gzip);
		assert_true(gzip->size > SIZE / 3 && gzip->size < SIZE);
	}
	assert_null(in("f0.txt", CODING_GZIP));
	assert_non_null(in("f0.txt", CODING_IDENTITY));
	assert_non_null(in("f4.txt", CODING_GZIP));
	make("f0.txt", CODING_GZIP);
	assert_non_null(in("f0.txt", CODING_GZIP));
}

static void what_does_not_get_smaller_is_tried_once(void **state) {
	(void)state;
	char noise[1001];
	for (int i = 0; i < 1000; i++) noise[i] = (char)(1 + random() % 255); // NOLINT(cert-msc30-c,cert-msc50-cpp)
	noise[1000] = '\0';
	write_file("noise.txt", noise, 0644);
	settle();
	make("noise.txt", CODING_GZIP);
	assert_null(in("noise.txt", CODING_GZIP));
	struct resource *resource;
	const struct lookup wanted = {.path = slice_of("noise.txt"), .prefetched = true};
	assert_int_equal(cache_find(cache, &wanted, now_ms, &resource), 0);
	assert_false(resource->producible >> CODING_GZIP & 1);
}

/* Has a file of the checkout, which has not changed lately, compressed with brotli. Returns its resource. */
static struct resource *improved(struct cache *c, const char *path) {
	struct resource *resource;
	const struct lookup wanted = {.path = slice_of(path), .prefetched = true};
	for (int i = 0; i < 2; i++) { /* the first time it is not known whether it is requested again */
		assert_int_equal(cache_find(c, &wanted, now_ms, &resource), 0);
		do {
			cache_improve(c, resource, CODING_BR, now_ms);
			assert_int_equal(io_wait(loop, jobs_count(jobs) ? 100 : 0), 0);
			jobs_collect(jobs);
		} while (jobs_count(jobs));
		assert_false(i == 0 && resource->available >> CODING_BR & 1);
	}
	return resource;
}

static void a_better_coding_is_made_once_for_all_workers_and_only_if_there_is_room(void **state) {
	(void)state;
	if (!brotli_is_built) skip();
	const char *const path = "tests/unit/check.h";
	const struct tree here = {.docroot.root = open(".", O_RDONLY | O_DIRECTORY)};
	struct cache *one = cache_over(&here, GZIP_BYTES), *other = cache_over(&here, GZIP_BYTES),
				 *full = cache_over(&here, 100);
	const struct representation *first = improved(one, path)->representation[CODING_BR];
	assert_non_null(first);
	const struct representation *same = improved(other, path)->representation[CODING_BR];
	assert_ptr_equal(same->body, first->body);
	assert_null(improved(full, path)->representation[CODING_BR]);
	cache_free(one);
	assert_int_not_equal(same->body[same->size - 1],
						 0); /* it is still there: the last octet has the end of the last block */
	cache_free(other);
	cache_free(full);
	close(here.docroot.root);
}

/* --- copies of large files --- */

enum { COPIED = BYTES / CACHE_COPY_PART * 3 / 4 }; /* bytes: two are below the limit, three are above it */

/* Returns what a connection that copies sends, with a reference. Waits for a copy that is being made. */
static struct representation *sent(const char *path) {
	struct resource *resource;
	const struct lookup wanted = {.path = slice_of(path), .prefetched = true};
	assert_int_equal(cache_find(cache, &wanted, now_ms, &resource), 0);
	struct representation *f = cache_copied(cache, resource, resource->representation[CODING_IDENTITY]);
	representation_retain(f);
	while (jobs_count(jobs)) {
		assert_int_equal(io_wait(loop, 100), 0);
		jobs_collect(jobs);
	}
	return f;
}

/* Returns whether a file is sent from memory after several requests. */
static bool is_copied(const char *path) {
	for (int i = 0; i < 3; i++) representation_release(sent(path));
	struct representation *f = sent(path);
	const bool copied = f->body != NULL;
	representation_release(f);
	return copied;
}

static void write_large(const char *name, off_t size) {
	write_zeros(name, size);
	rewrite(name, name);
}

/* Waits until the content of these files is known, and their last change is not recent. */
static void find_large(int count, const char *const *names) {
	grow_old();
	for (int i = 0; i < count; i++) representation_release(identified(names[i]));
}

static void a_large_file_is_copied_when_it_is_requested_again(void **state) {
	(void)state;
	write_large("large", COPIED);
	find_large(1, (const char *const[]){"large"});
	const struct representation *file = refound("large");
	representation_release(sent("large")); /* begins to copy */
	struct representation *copy = sent("large");
	assert_int_equal(copy->fd, -1);
	assert_int_equal(copy->size, COPIED);
	assert_memory_equal(copy->body, "large", strlen("large") + 1);
	assert_int_equal(copy->fields.length, file->fields.length);
	assert_memory_equal(copy->fields.at, file->fields.at, file->fields.length);
	assert_in_range(cache_usage(cache).bytes, COPIED, COPIED + 8192);
	now_ms += CACHE_UNUSED_MS;
	cache_tidy(cache, now_ms, false);
	assert_int_equal(cache_usage(cache).bytes, 0);
	assert_memory_equal(copy->body, "large", strlen("large") + 1);
	representation_release(copy);
}

static void a_file_is_not_copied_if_it_is_too_large_or_requested_once_or_changed(void **state) {
	(void)state;
	write_large("huge", BYTES / CACHE_COPY_PART + 1);
	write_large("once", COPIED);
	find_large(2, (const char *const[]){"huge", "once"});
	assert_false(is_copied("huge"));
	now_ms += CACHE_UNUSED_MS;
	cache_tidy(cache, now_ms, false);
	representation_release(sent("once"));
	struct resource *resource;
	const struct lookup again = {.path = slice_of("once"), .prefetched = true, .again = true};
	assert_int_equal(cache_find(cache, &again, now_ms, &resource), 0);
	(void)cache_copied(cache, resource, resource->representation[CODING_IDENTITY]);
	assert_int_equal(jobs_count(jobs), 0);
	write_large("fresh", COPIED);
	settle();
	representation_release(identified("fresh"));
	assert_false(is_copied("fresh"));
}

static void a_copy_makes_room_when_it_is_neither_requested_nor_sent(void **state) {
	(void)state;
	static const char *const names[] = {"a", "b", "c"};
	for (int i = 0; i < 3; i++) write_large(names[i], COPIED);
	find_large(3, names);
	assert_true(is_copied("a"));
	assert_true(is_copied("b"));
	assert_false(is_copied("c"));
	struct representation *a = sent("a"), *b = sent("b");
	now_ms += CACHE_CHECK_MS;
	assert_false(is_copied("c"));
	representation_release(b);
	now_ms += CACHE_CHECK_MS;
	assert_true(is_copied("c"));
	assert_true(is_copied("a"));
	assert_false(is_copied("b"));
	assert_in_range(cache_usage(cache).bytes, COPIED, BYTES / CACHE_COPIES_PART + 8192);
	representation_release(a);
}

/* Begins to copy a file, unless another one is being copied. */
static void begin_copy(const char *path) {
	struct resource *resource;
	const struct lookup wanted = {.path = slice_of(path), .prefetched = true};
	assert_int_equal(cache_find(cache, &wanted, now_ms, &resource), 0);
	(void)cache_copied(cache, resource, resource->representation[CODING_IDENTITY]);
	assert_int_equal(jobs_count(jobs), 1);
}

static void copies_make_room_for_small_files(void **state) {
	(void)state;
	enum { SMALL = BYTES / 4 * 3 / REPRESENTATION_BODY_MAX }; /* together with one copy they fit */
	static const char *const names[] = {"a", "b"};
	char name[32];
	for (int i = 0; i < 2; i++) write_large(names[i], COPIED);
	for (int i = 0; i < SMALL; i++) {
		snprintf(name, sizeof name, "small%d", i);
		write_zeros(name, REPRESENTATION_BODY_MAX);
	}
	find_large(2, names);
	for (int i = 0; i < 2; i++) assert_true(is_copied(names[i]));
	struct representation *a = sent("a");
	now_ms += CACHE_CHECK_MS;
	for (int i = 0; i < 3 * SMALL; i++) {
		snprintf(name, sizeof name, "small%d", i % SMALL);
		representation_release(found(name));
	}
	assert_int_equal(cache_usage(cache).files, SMALL + 2);
	struct representation *b = sent("b");
	assert_int_not_equal(b->fd, -1);
	representation_release(b);
	representation_release(a);
}

static void a_copy_for_which_there_is_no_room_takes_none_from_others(void **state) {
	(void)state;
	static const char *const names[] = {"a", "b", "c", "little"};
	for (int i = 0; i < 3; i++) write_large(names[i], COPIED);
	write_large("little", COPIED / 16);
	find_large(4, names);
	assert_true(is_copied("little"));
	now_ms += CACHE_CHECK_MS;
	assert_true(is_copied("a"));
	assert_true(is_copied("b"));
	assert_false(is_copied("c"));
	struct representation *little = sent("little");
	assert_non_null(little->body);
	representation_release(little);
}

static void what_is_compressed_does_not_count_beside_a_copy(void **state) {
	(void)state;
	enum { LENGTH = 400000 };
	char *text = malloc(LENGTH + 1);
	assert_non_null(text);
	srandom(1);
	for (int i = 0; i < LENGTH; i++) text[i] = (char)('a' + random() % 16);
	text[LENGTH] = '\0';
	write_file("a.txt", text, 0644);
	free(text);
	find_large(1, (const char *const[]){"a.txt"});
	struct resource *resource;
	const struct lookup wanted = {.path = slice_of("a.txt"), .prefetched = true};
	assert_int_equal(cache_find(cache, &wanted, now_ms, &resource), 0);
	assert_non_null(cache_convert(cache, resource, CODING_GZIP));
	assert_true(is_copied("a.txt"));
	assert_non_null(resource->representation[CODING_GZIP]);
	assert_in_range(cache_usage(cache).bytes, LENGTH, LENGTH + 8192);
}

static void one_file_is_copied_at_a_time_and_may_be_forgotten_meanwhile(void **state) {
	(void)state;
	static const char *const names[] = {"a", "b"};
	for (int i = 0; i < 2; i++) write_large(names[i], COPIED);
	find_large(2, names);
	begin_copy("a");
	begin_copy("b");
	cache_tidy(cache, now_ms, true);
	assert_int_equal(cache_usage(cache).files, 0);
	representation_release(sent("b"));
	assert_in_range(cache_usage(cache).bytes, 1, 8192);
}

static void a_file_that_changes_while_it_is_copied_is_sent_as_it_is(void **state) {
	(void)state;
	write_large("large", COPIED);
	find_large(1, (const char *const[]){"large"});
	begin_copy("large");
	rewrite("large", "changed");
	assert_false(is_copied("large"));
}

static struct sites *sites;

static void check_site(const char *host, unsigned port, const char *wanted) {
	const struct site *site = sites_find(sites, slice_of(host), port, now_ms);
	if (!site != !wanted) fail_msg("%s: found or not", host);
	if (wanted) check_slice(site->prefix, wanted);
}

static void sites_are_found_from_the_most_special_to_the_root(void **state) {
	(void)state;
	sites = sites_new(&tree, NULL, guards, VHOSTS_TRY, NULL, 0);
	check_site("a.org", 80, "");
	assert_int_equal(mkdirat(root, "a.org", 0755), 0);
	check_site("a.org", 80, "");
	now_ms += SITE_CHECK_MS;
	check_site("A.org.:99", 80, "a.org/");
	assert_int_equal(mkdirat(root, "a.org:81", 0755), 0);
	check_site("a.org", 81, "a.org:81/");
	check_site("a.org:81", 80, "a.org/");
	write_file("file.org", "", 0644);
	check_site("file.org", 80, "");
	sites_free(sites);
}

/* Who may make a directory in the root need not be who may make a site. */
static void a_directory_is_the_site_of_a_host_only_if_its_name_says_so(void **state) {
	(void)state;
	static const char *const names[] = {"default", "uploads", "uploads.", "localhost", "uploads:81", "[::1]", "UP.org"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_int_equal(mkdirat(root, names[i], 0755), 0);
	sites = sites_new(&tree, NULL, guards, VHOSTS_TRY, NULL, 0);
	check_site("b.org", 80, "");
	check_site("default", 80, "");
	check_site("uploads", 80, "");
	check_site("UPLOADS.:80", 80, "");
	check_site("uploads", 81, "uploads:81/");
	check_site("localhost", 80, "localhost/");
	check_site("[::1]", 80, "[::1]/");
	sites_free(sites);
	sites = sites_new(&tree, NULL, guards, VHOSTS_ONLY, NULL, 0);
	check_site("b.org", 80, "default/");
	check_site("uploads.", 80, "uploads/");
	check_site("up.org", 80, "default/");
	sites_free(sites);
}

static void check_hosts(enum vhosts vhosts, const char *wanted) {
	static const char *const names[] = {"a.org",  "localhost", "a:80",  "[::1]",     "1.2.3.4", "a",   "default",
										"a.org.", "a.org.:80", "A.org", "a.org:080", "a.org:",  "a:0", ".hidden",
										"a..b",   "a b.org",   "",      ":80",       "a:65536"};
	char found[256];
	struct text t = text_begin(found, sizeof found);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!host_has_directory(vhosts, slice_of(names[i]))) continue;
		text_add(&t, slice_of(names[i]));
		text_add_char(&t, ' ');
	}
	check_slice(text_written(&t), wanted);
}

static void a_directory_that_no_request_can_name_is_that_of_no_host(void **state) {
	(void)state;
	check_hosts(VHOSTS_TRY, "a.org localhost a:80 [::1] 1.2.3.4 a:0 ");
	check_hosts(VHOSTS_ONLY, "a.org localhost a:80 [::1] 1.2.3.4 a default a:0 ");
	check_hosts(VHOSTS_OFF, "");
	check_hosts((enum vhosts) - 1, "");
}

static void with_virtual_hosts_only_an_unknown_host_has_no_site(void **state) {
	(void)state;
	sites = sites_new(&tree, NULL, guards, VHOSTS_ONLY, NULL, 0);
	check_site("a.org", 80, NULL);
	check_site("", 80, NULL);
	sites_free(sites);
	sites = sites_new(&tree, NULL, guards, VHOSTS_OFF, NULL, 0);
	assert_int_equal(mkdirat(root, "a.org", 0755), 0);
	check_site("a.org", 80, "");
	sites_free(sites);
}

static void what_is_unknown_of_a_site_is_not_sent(void **state) {
	(void)state;
	static const struct site unknown;
	char path[SITE_PREFIX_MAX + 8] = "/";
	sites = sites_new(&tree, NULL, guards, VHOSTS_TRY, NULL, 0);
	const struct site *site = sites_find(sites, SLICE(""), 80, now_ms);
	assert_non_null(site);
	assert_true(sites_may_send(sites, site, SLICE("/a"), now_ms));
	assert_true(sites_may_send(sites, site, SLICE("/d/a"), now_ms));
	assert_false(sites_may_send(sites, &unknown, SLICE("/a"), now_ms));
	assert_int_equal(errno, EAGAIN);
	memset(path + 1, 'd', SITE_PREFIX_MAX);
	memcpy(path + 1 + SITE_PREFIX_MAX, "/a", 3);
	assert_false(sites_may_send(sites, site, slice_of(path), now_ms));
	assert_int_equal(errno, EACCES);
	sites_free(sites);
}

static void invented_hosts_do_not_crowd_out_real_ones(void **state) {
	(void)state;
	sites = sites_new(&tree, NULL, guards, VHOSTS_TRY, NULL, 0);
	assert_int_equal(mkdirat(root, "a.org", 0755), 0);
	for (int i = 0; i < 10 * SITES_MAX; i++) {
		char host[32];
		snprintf(host, sizeof host, "host%d.org", i);
		check_site(host, 80, "");
		check_site("a.org", 80, "a.org/");
	}
	sites_free(sites);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(what_is_remembered_of_a_file_is_small),
		TEST(a_small_file_is_in_memory_with_its_fields),
		TEST(a_large_file_is_open_and_found_again_without_opening),
		TEST(half_of_the_files_that_may_be_sent_can_be_spared),
		TEST(what_is_not_a_world_readable_regular_file_is_refused),
		TEST(a_link_out_is_followed_or_not_as_told),
		TEST(a_change_is_seen_after_a_second_and_the_old_state_stays_whole),
		TEST(what_was_read_when_it_had_just_been_written_is_read_again),
		TEST(a_file_was_written_to_or_not_whatever_its_names),
		TEST(a_large_file_rewritten_with_the_same_time_has_another_etag),
		TEST(the_same_content_has_the_same_etag_whatever_its_name_and_time),
		TEST(a_file_that_goes_is_gone_after_a_second),
		TEST(no_more_descriptors_are_kept_than_allowed),
		TEST(a_fresh_file_is_read_again_until_it_is_old),
		TEST(a_change_of_an_old_file_is_seen),
		TEST(no_more_files_are_kept_than_allowed),
		TEST(no_more_bytes_are_kept_than_allowed),
		TEST(what_was_asked_for_again_is_kept),
		TEST(files_that_are_asked_for_once_do_not_push_out_others),
		TEST(a_full_cache_keeps_what_is_asked_for_twice),
		TEST(files_that_are_still_sent_take_no_more_memory_than_allowed),
		TEST(large_files_do_not_push_out_small_ones),
		TEST(a_large_file_is_copied_when_it_is_requested_again),
		TEST(a_file_is_not_copied_if_it_is_too_large_or_requested_once_or_changed),
		TEST(a_copy_makes_room_when_it_is_neither_requested_nor_sent),
		TEST(copies_make_room_for_small_files),
		TEST(a_copy_for_which_there_is_no_room_takes_none_from_others),
		TEST(what_is_compressed_does_not_count_beside_a_copy),
		TEST(one_file_is_copied_at_a_time_and_may_be_forgotten_meanwhile),
		TEST(a_file_that_changes_while_it_is_copied_is_sent_as_it_is),
		TEST(an_upstream_is_kept_with_a_reference_and_its_target),
		TEST(an_answer_is_kept_while_its_resource_is_valid),
		TEST(what_is_compressed_is_dropped_for_what_is_used_later),
		TEST(what_does_not_get_smaller_is_tried_once),
		TEST(a_better_coding_is_made_once_for_all_workers_and_only_if_there_is_room),
		TEST(sites_are_found_from_the_most_special_to_the_root),
		TEST(a_directory_is_the_site_of_a_host_only_if_its_name_says_so),
		TEST(a_directory_that_no_request_can_name_is_that_of_no_host),
		TEST(with_virtual_hosts_only_an_unknown_host_has_no_site),
		TEST(what_is_unknown_of_a_site_is_not_sent),
		TEST(invented_hosts_do_not_crowd_out_real_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
