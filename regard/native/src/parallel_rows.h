/* Work that goes row by row, shared by threads.
 *
 * Include it after a `Job`, with `from` and `to` among its fields, and `rows`, which does the rows of
 * one. Where NUMBERED is defined, `number` says which of the threads does them.
 */

static void work(void *given) { rows(given); }

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
    regard_parallel(work, jobs, sizeof(Job), threads);
}
