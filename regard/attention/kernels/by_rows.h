/* Work that goes row by row, compiled for each kind of processor and shared by threads.
 *
 * Include it after a `Job`, with `from`, `to` and `level` among its fields, and `rows`, which does
 * the rows of one. Where NUMBERED is defined, `number` says which of the threads does them.
 */

static void rows_any(const Job *job) { rows(job); }
#ifdef X86
AVX2 void rows_avx2(const Job *job) { rows(job); }
AVX512 void rows_avx512(const Job *job) { rows(job); }
static void (*const all_rows[])(const Job *) = {rows_any, rows_avx2, rows_avx512};
#else
static void (*const all_rows[])(const Job *) = {rows_any, rows_any, rows_any};
#endif

static void work(void *given) {
    const Job *job = given;
    all_rows[job->level](job);
}

static void by_rows(Job whole, long total, int threads) {
    Job jobs[MOST_THREADS];
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > total) threads = total > 0 ? (int)total : 1;
    for (int t = 0; t < threads; t++) {
        jobs[t] = whole;
        jobs[t].from = total * t / threads, jobs[t].to = total * (t + 1) / threads;
#ifdef NUMBERED
        jobs[t].number = t;
#endif
    }
    regard_share(work, jobs, sizeof(Job), threads);
}
