/* Rows divided among threads, each with a job of its own.
 *
 * Include it after a struct `Job` with the fields `from` and `until`, a range of rows, and `status`; and
 * after `run`, which does the rows of a job. With JOB_HAS_NUMBER, `number` is the thread's.
 */

static void run_job(void *job) { run(job); }

/* The highest status. */
static int parallel_rows(Job whole, long rows, int threads) {
    Job jobs[MAX_THREADS];
    int status = DONE;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    if (threads > rows) threads = rows > 0 ? (int)rows : 1;
    for (int t = 0; t < threads; t++) {
        jobs[t] = whole;
        jobs[t].from = rows * t / threads, jobs[t].until = rows * (t + 1) / threads;
#ifdef JOB_HAS_NUMBER
        jobs[t].number = t;
#endif
    }
    regard_parallel(run_job, jobs, sizeof(Job), threads);
    for (int t = 0; t < threads; t++) status = jobs[t].status > status ? jobs[t].status : status;
    return status;
}
