/* Several jobs on several threads: those of the OpenMP runtime that torch has loaded, if there is
 * one, for its threads wait for work by spinning, and others would have to share a core with them;
 * else threads of our own. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "common.h"

typedef struct {
    Work work;
    char *jobs;
    size_t size;
    int count;
    unsigned char taken[MOST_THREADS];
} Share;

/* Each thread takes the job of its own number, for which it may have the data in its cache from the
 * last time, and then those that nobody has begun: it does not matter how many threads there are. */
static void take(Share *share, int own) {
    for (int n = 0; n < share->count; n++) {
        const int job = (own + n) % share->count;
        if (!__atomic_exchange_n(&share->taken[job], 1, __ATOMIC_RELAXED))
            share->work(share->jobs + job * share->size);
    }
}

static void *take_any(void *given) {
    take(given, 0);
    return NULL;
}

/* As compilers call it for `#pragma omp parallel`. */
typedef void (*Parallel)(void (*)(void *), void *, unsigned, unsigned);

static int (*thread_number)(void);

static Parallel openmp(void) {
    static Parallel found;
    static int looked; /* last of all, for threads of Python's that ask at once */
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        *(void **)&thread_number = dlsym(RTLD_DEFAULT, "omp_get_thread_num");
        if (thread_number) *(void **)&found = dlsym(RTLD_DEFAULT, "GOMP_parallel");
        __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    }
    return found;
}

static void take_own(void *given) { take(given, thread_number()); }

/* As many jobs as threads, at most MOST_THREADS. */
void regard_parallel(Work work, void *jobs, size_t size, int count) {
    if (count == 1) work(jobs);
    if (count < 2) return;
    Share share = {work, jobs, size, count, {0}};
    Parallel parallel = openmp();
    if (parallel) {
        parallel(take_own, &share, (unsigned)count, 0);
        return;
    }
    pthread_t threads[MOST_THREADS];
    int started = 0;
    while (started < count - 1 && !pthread_create(&threads[started], NULL, take_any, &share))
        started++;
    take(&share, 0);
    for (int t = 0; t < started; t++) pthread_join(threads[t], NULL);
}

/* ---- numbers too small to be normal --------------------------------------------------------- */

#ifdef X86
enum { FLUSH = 0x8040 }; /* results flushed to zero, inputs taken as zero */

static void set_flush(void *given) {
    const unsigned others = _mm_getcsr() & ~(unsigned)FLUSH;
    _mm_setcsr(*(int *)given ? others | FLUSH : others);
}

/* Have them taken as zero, or not, by this thread and so many in all; returns how it was. */
int regard_flush_denormals(int on, int threads) {
    const int before = (_mm_getcsr() & FLUSH) == FLUSH;
    Parallel parallel = threads > 1 ? openmp() : NULL;
    if (parallel) parallel(set_flush, &on, (unsigned)threads, 0);
    set_flush(&on);
    return before;
}
#else
int regard_flush_denormals(int on, int threads) { return 0; } /* others are as quick with them */
#endif
