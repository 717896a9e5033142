/* Memory that will be needed next, asked for bit by bit, so that it arrives while others compute. */

#ifndef REGARD_AHEAD_H
#define REGARD_AHEAD_H

#include "common.h"

enum { LINE = 64, MOST_PARTS = 7 };

/* Rows that are wanted. */
typedef struct {
    const char *at;              /* of the row in question */
    long row, rows, line, lines; /* bytes to the next row, rows left; lines asked for, and of all */
} Wanted;

typedef struct Ahead {
    Wanted parts[MOST_PARTS];
    long count, which, pace;
} Ahead;

/* So many rows of so many numbers are wanted, too. */
INLINE void ahead_of(Ahead *ahead, const float *from, long row, long rows, long size) {
    const long bytes = sizeof(float), lines = (size * bytes + LINE - 1) / LINE;
    if (rows < 1 || lines < 1) return;
    Wanted *part = ahead->parts + ahead->count++;
    *part = (Wanted){(const char *)from, row * bytes, rows, 0, lines};
    if (part->row == lines * LINE) part->lines *= rows, part->rows = 1; /* one long row */
}

/* Ask for all of it in so many turns. */
INLINE void ahead_within(Ahead *ahead, long turns) {
    long all = 0;
    for (long n = 0; n < ahead->count; n++) all += ahead->parts[n].rows * ahead->parts[n].lines;
    ahead->pace = turns > 0 ? (all + turns - 1) / turns : all;
}

/* One turn; none if there is nothing to ask for, NULL. */
INLINE void ask_ahead(Ahead *ahead) {
    for (long left = ahead ? ahead->pace : 0; left > 0 && ahead->which < ahead->count;) {
        Wanted *part = ahead->parts + ahead->which;
        const char *at = part->at + part->line * LINE;
        const long some = left < part->lines - part->line ? left : part->lines - part->line;
        for (long n = 0; n < some; n++) __builtin_prefetch(at + n * LINE, 0, 2);
        left -= some, part->line += some;
        if (part->line < part->lines) return;
        part->line = 0, part->at += part->row;
        if (!--part->rows) ahead->which++;
    }
}

#endif
