// A clock that make chaos sets, for a server that preloads this: MySQL does not answer behind
// libfaketime. The file that FAKETIME_TIMESTAMP_FILE names has the offset in seconds and, after an
// x, the speed. Waits until a time are translated back; those on the monotonic clock are left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef int (*wait_t)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int (*clockwait_t)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);

static wait_t real_wait;
static clockwait_t real_clockwait;
static const char *path;
static double began;

static double machine(void) {
	struct timespec t;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

// Not dlsym at the first call: an allocator asks for the time before it can be asked for memory.
__attribute__((constructor)) static void init(void) {
	began = machine();
	real_wait = (wait_t)dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
	real_clockwait = (clockwait_t)dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	path = getenv("FAKETIME_TIMESTAMP_FILE");
}

// ahead is how far the clock is before the machine's, in ns.
static long long ahead(void) {
	char text[64], *speed;
	int kept = errno, file, n;
	double more = 0;
	if (!path || (file = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
		errno = kept;
		return 0;
	}
	n = read(file, text, sizeof text - 1);
	close(file);
	errno = kept;
	text[n > 0 ? n : 0] = 0;
	if ((speed = strchr(text, 'x'))) more = (machine() - began) * (atof(speed + 1) - 1);
	return (long long)((atof(text) + more) * 1e9);
}

static void shift(struct timespec *t, long long by) {
	long long ns = t->tv_sec * 1000000000LL + t->tv_nsec + by;
	t->tv_sec = ns / 1000000000LL;
	t->tv_nsec = ns % 1000000000LL;
}

int clock_gettime(clockid_t id, struct timespec *t) {
	if (syscall(SYS_clock_gettime, id, t) < 0) return -1;
	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) shift(t, ahead());
	return 0;
}

int gettimeofday(struct timeval *restrict v, void *restrict zone) {
	struct timespec t;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	v->tv_sec = t.tv_sec;
	v->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *to) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (to) *to = t.tv_sec;
	return t.tv_sec;
}

// A condition does not tell its clock: the machine has not been up for thirty years. InnoDB waits
// until the end of time, and ends itself if that is refused as no time.
static struct timespec translated(const struct timespec *until) {
	struct timespec t = *until;
	if (t.tv_sec > 1000000000 && t.tv_sec < 10000000000) shift(&t, -ahead());
	return t;
}

int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, const struct timespec *restrict until) {
	struct timespec t = translated(until);
	return real_wait(c, m, &t);
}

int pthread_cond_clockwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, clockid_t id, const struct timespec *restrict until) {
	struct timespec t = translated(until);
	return real_clockwait(c, m, id, &t);
}
