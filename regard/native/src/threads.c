/* Jobs on threads: those of the OpenMP runtime that torch has loaded, if there is one, because its
 * threads spin while they wait, and others would have to share a core with them; else our own. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "common.h"

typedef struct {
    JobFunction run;
    char *jobs;
    size_t size;
    int count;
    unsigned char taken[MAX_THREADS];
} Queue;

/* Each thread takes the job of its own number, whose data may be in its cache from the last call, and
 * then those that nobody has begun: it does not matter how many threads there are. */
static void take_jobs(Queue *queue, int first) {
    for (int n = 0; n < queue->count; n++) {
        const int job = (first + n) % queue->count;
        if (!__atomic_exchange_n(&queue->taken[job], 1, __ATOMIC_RELAXED))
            queue->run(queue->jobs + job * queue->size);
    }
}

static void *pthread_main(void *queue) {
    take_jobs(queue, 0);
    return NULL;
}

/* As compilers call it for `#pragma omp parallel`. */
typedef void (*OpenMPParallel)(void (*)(void *), void *, unsigned, unsigned);

static int (*openmp_thread_number)(void);

static OpenMPParallel find_openmp(void) {
    static OpenMPParallel found;
    static int searched; /* set last: several Python threads may call at once */
    if (!__atomic_load_n(&searched, __ATOMIC_ACQUIRE)) {
        *(void **)&openmp_thread_number = dlsym(RTLD_DEFAULT, "omp_get_thread_num");
        if (openmp_thread_number) *(void **)&found = dlsym(RTLD_DEFAULT, "GOMP_parallel");
        __atomic_store_n(&searched, 1, __ATOMIC_RELEASE);
    }
    return found;
}

static void openmp_main(void *queue) { take_jobs(queue, openmp_thread_number()); }

/* As many jobs as threads, at most MAX_THREADS. */
void regard_parallel(JobFunction run, void *jobs, size_t size, int count) {
    if (count == 1) run(jobs);
    if (count < 2) return;
    Queue queue = {run, jobs, size, count, {0}};
    OpenMPParallel parallel = find_openmp();
    if (parallel) {
        parallel(openmp_main, &queue, (unsigned)count, 0);
        return;
    }
    pthread_t threads[MAX_THREADS];
    int started = 0;
    while (started < count - 1 && !pthread_create(&threads[started], NULL, pthread_main, &queue))
        started++;
    take_jobs(&queue, 0);
    for (int t = 0; t < started; t++) pthread_join(threads[t], NULL);
}

/* ---- denormals ------------------------------------------------------------------------------ */

#ifdef X86
enum { FLUSH = 0x8040 }; /* MXCSR: flush-to-zero for results, denormals-are-zero for inputs */

static void set_flush(void *on) {
    const unsigned others = _mm_getcsr() & ~(unsigned)FLUSH;
    _mm_setcsr(*(int *)on ? others | FLUSH : others);
}

/* Treat denormals as zero, or not, on this thread and on so many in all; returns the old setting. */
int regard_flush_denormals(int on, int threads) {
    const int before = (_mm_getcsr() & FLUSH) == FLUSH;
    OpenMPParallel parallel = threads > 1 ? find_openmp() : NULL;
    if (parallel) parallel(set_flush, &on, (unsigned)threads, 0);
    set_flush(&on);
    return before;
}
#else
int regard_flush_denormals(int on, int threads) { return 0; } /* others are as fast with them */
#endif
