/* Emulates the DMA and the cores, and watches how they are used.
 *
 * A transfer copies when it is started, when it is waited for, or at a random moment between; a correct program cannot tell.
 * Whenever that is, from the start to the wait
 *   - the destination holds noise until the bytes are copied, and AddressSanitizer reports any access to it,
 *   - the destination must not be written: that shows when it is waited for,
 *   - the source must not change: its hash is compared,
 *   - no other transfer may write the source, or read or write the destination.
 * Both ends lie inside their memories.
 * What is wrong is said on stderr, and the program ends with status 3. */
#include "tilewright_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#endif

/* Addresses of the runs of one side of a transfer, ascending. */
struct runs {
    uintptr_t *start;
    size_t count, bytes;
};

struct side {
    unsigned char *first;
    ptrdiff_t row, plane;
};

struct transfer {
    int channel, rows, planes;
    size_t bytes;
    struct side to, from;
    struct runs written, read;
    uint64_t noise, hash; /* what the destination holds until the bytes are copied; the source at the start */
    int copied;
};

struct memory {
    const char *name;
    uintptr_t start;
    size_t bytes;
};

static struct {
    enum tw_moment moment;
    uint64_t random;
    struct transfer *pending;
    size_t pending_count, pending_room;
    struct memory *memories;
    size_t memory_count;
    int *order; /* of the cores whose turn is still to come */
    int cores_left, cores_room;
} machine = {.moment = TW_AT_WAIT, .random = 0x9E3779B97F4A7C15u};

static void *grown(void *list, size_t count, size_t size) {
    void *larger = realloc(list, count * size);
    if (!larger) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return larger;
}

static uint64_t random_word(void) {
    machine.random ^= machine.random << 13;
    machine.random ^= machine.random >> 7;
    machine.random ^= machine.random << 17;
    return machine.random * 0x2545F4914F6CDD1Du;
}

static size_t random_below(size_t count) { return (size_t)(random_word() >> 33) % count; }

static const struct memory *memory_of(const void *address) {
    for (size_t i = 0; i < machine.memory_count; i++)
        if ((uintptr_t)address - machine.memories[i].start < machine.memories[i].bytes)
            return &machine.memories[i];
    return NULL;
}

/* Messages */

static void print_address(const void *address) {
    const struct memory *memory = memory_of(address);
    if (memory)
        fprintf(stderr, "%s+%zu", memory->name, (size_t)((uintptr_t)address - memory->start));
    else
        fprintf(stderr, "%p", address);
}

static void print_side(const char *word, const struct side *side, const struct transfer *transfer) {
    fprintf(stderr, " %s ", word);
    print_address(side->first);
    if (transfer->rows > 1)
        fprintf(stderr, ", rows %td apart", side->row);
    if (transfer->planes > 1)
        fprintf(stderr, ", planes %td apart", side->plane);
}

static void print_transfer(const struct transfer *transfer) {
    fprintf(stderr, "  channel %d: %d x %d x %zu bytes", transfer->channel, transfer->planes, transfer->rows,
            transfer->bytes);
    print_side("to", &transfer->to, transfer);
    print_side("from", &transfer->from, transfer);
    fprintf(stderr, "\n");
}

static void violation(const char *what, const struct transfer *transfer, const struct transfer *other) {
    fprintf(stderr, "dma: %s\n", what);
    print_transfer(transfer);
    if (other)
        print_transfer(other);
    _Exit(3); /* and no search for leaks, which could change the status */
}

/* Runs */

static unsigned char *run_at(const struct side *side, int plane, int row) {
    return side->first + plane * side->plane + row * side->row;
}

static int by_address(const void *a, const void *b) {
    const uintptr_t left = *(const uintptr_t *)a, right = *(const uintptr_t *)b;
    return (left > right) - (left < right);
}

static struct runs runs_of(const struct transfer *transfer, const struct side *side) {
    struct runs runs = {NULL, (size_t)transfer->planes * (size_t)transfer->rows, transfer->bytes};
    runs.start = grown(NULL, runs.count, sizeof *runs.start);
    size_t n = 0;
    int ascending = 1;
    for (int plane = 0; plane < transfer->planes; plane++)
        for (int row = 0; row < transfer->rows; row++, n++) {
            runs.start[n] = (uintptr_t)run_at(side, plane, row);
            ascending = ascending && (n == 0 || runs.start[n - 1] <= runs.start[n]);
        }
    if (!ascending)
        qsort(runs.start, runs.count, sizeof *runs.start, by_address);
    return runs;
}

static int overlap(const struct runs *a, const struct runs *b) {
    const uintptr_t a_end = a->start[a->count - 1] + a->bytes, b_end = b->start[b->count - 1] + b->bytes;
    if (a_end <= b->start[0] || b_end <= a->start[0])
        return 0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        if (a->start[i] + a->bytes <= b->start[j])
            i++;
        else if (b->start[j] + b->bytes <= a->start[i])
            j++;
        else
            return 1;
    }
    return 0;
}

static int overlaps_itself(const struct runs *runs) {
    for (size_t i = 1; i < runs->count; i++)
        if (runs->start[i - 1] + runs->bytes > runs->start[i])
            return 1;
    return 0;
}

/* Bytes */

static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/* Whole words first: copies of constant length become single instructions. */
static uint64_t hashed(uint64_t hash, const unsigned char *bytes, size_t count) {
    uint64_t word;
    for (; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = mixed(hash, word);
    }
    word = 0;
    memcpy(&word, bytes, count);
    return mixed(hash, word);
}

static uint64_t source_hash(const struct transfer *transfer) {
    uint64_t hash = transfer->bytes;
    for (int plane = 0; plane < transfer->planes; plane++)
        for (int row = 0; row < transfer->rows; row++)
            hash = hashed(hash, run_at(&transfer->from, plane, row), transfer->bytes);
    return hash;
}

static void fill(unsigned char *bytes, size_t count, uint64_t noise) {
    for (; count >= sizeof noise; bytes += sizeof noise, count -= sizeof noise)
        memcpy(bytes, &noise, sizeof noise);
    memcpy(bytes, &noise, count);
}

static int filled(const unsigned char *bytes, size_t count, uint64_t noise) {
    for (; count >= sizeof noise; bytes += sizeof noise, count -= sizeof noise)
        if (memcmp(bytes, &noise, sizeof noise) != 0)
            return 0;
    return memcmp(bytes, &noise, count) == 0;
}

/* Closes the destination to everybody, or opens it. AddressSanitizer keeps books of 8 bytes at a time: where a run shares
 * such a piece with its neighbours, the piece stays open. */
static void guard(const struct transfer *transfer, int closed) {
    for (size_t i = 0; i < transfer->written.count; i++) {
        const uintptr_t start = transfer->written.start[i], first = (start + 7) / 8 * 8;
        const uintptr_t end = (start + transfer->bytes) / 8 * 8;
        if (end <= first)
            continue;
        if (closed)
            ASAN_POISON_MEMORY_REGION((void *)first, end - first);
        else
            ASAN_UNPOISON_MEMORY_REGION((void *)first, end - first);
    }
}

/* Transfers */

/* The destination, which is open now, must hold what was left there. */
static void check_destination(const struct transfer *transfer) {
    for (int plane = 0; plane < transfer->planes; plane++)
        for (int row = 0; row < transfer->rows; row++) {
            const unsigned char *to = run_at(&transfer->to, plane, row);
            const int untouched = transfer->copied
                                      ? memcmp(to, run_at(&transfer->from, plane, row), transfer->bytes) == 0
                                      : filled(to, transfer->bytes, transfer->noise);
            if (!untouched)
                violation("the destination was written before the transfer was waited for", transfer, NULL);
        }
}

static void check(const struct transfer *transfer) {
    if (source_hash(transfer) != transfer->hash)
        violation("the source changed before the transfer was waited for", transfer, NULL);
    check_destination(transfer);
}

static void copy(struct transfer *transfer) {
    for (int plane = 0; plane < transfer->planes; plane++)
        for (int row = 0; row < transfer->rows; row++)
            memcpy(run_at(&transfer->to, plane, row), run_at(&transfer->from, plane, row), transfer->bytes);
    transfer->copied = 1;
}

static void spoil(struct transfer *transfer) {
    for (int plane = 0; plane < transfer->planes; plane++)
        for (int row = 0; row < transfer->rows; row++)
            fill(run_at(&transfer->to, plane, row), transfer->bytes, transfer->noise);
}

static void finish(struct transfer *transfer) {
    guard(transfer, 0);
    check(transfer);
    if (!transfer->copied)
        copy(transfer);
    free(transfer->written.start);
    free(transfer->read.start);
}

/* Some time passes: every pending transfer may copy now. */
static void pass_time(void) {
    if (machine.moment != TW_AT_RANDOM)
        return;
    for (size_t i = 0; i < machine.pending_count; i++) {
        struct transfer *transfer = &machine.pending[i];
        if (transfer->copied || random_below(4) != 0)
            continue;
        guard(transfer, 0);
        check(transfer);
        copy(transfer);
        guard(transfer, 1);
    }
}

/* AddressSanitizer alone would miss a last word that is partly outside; and there may be no AddressSanitizer. */
static void check_bounds(const struct transfer *new, const struct side *side, const struct runs *runs) {
    const struct memory *memory = memory_of(side->first);
    if (memory &&
        (runs->start[0] < memory->start || runs->start[runs->count - 1] + runs->bytes > memory->start + memory->bytes))
        violation("a transfer goes beyond a memory", new, NULL);
}

static void check_overlaps(const struct transfer *new) {
    if (overlaps_itself(&new->written))
        violation("the rows of a destination overlap", new, NULL);
    if (overlap(&new->written, &new->read))
        violation("the destination overlaps the source", new, NULL);
    for (size_t i = 0; i < machine.pending_count; i++) {
        const struct transfer *old = &machine.pending[i];
        if (overlap(&new->written, &old->written))
            violation("two pending transfers write the same bytes", new, old);
        if (overlap(&new->written, &old->read))
            violation("a transfer writes what a pending one reads", new, old);
        if (overlap(&new->read, &old->written))
            violation("a transfer reads what a pending one writes", new, old);
    }
}

void tw_dma_start(int channel, void *to, const void *from, size_t bytes, int rows, ptrdiff_t to_row, ptrdiff_t from_row,
                  int planes, ptrdiff_t to_plane, ptrdiff_t from_plane) {
    struct transfer new = {
        .channel = channel,
        .rows = rows,
        .planes = planes,
        .bytes = bytes,
        .to = {to, to_row, to_plane},
        .from = {(unsigned char *)(uintptr_t)from, from_row, from_plane},
        .noise = random_word(),
    };
    pass_time();
    if (rows < 0 || planes < 0)
        violation("a transfer of a negative size", &new, NULL);
    if (bytes == 0 || rows == 0 || planes == 0)
        return;
    new.written = runs_of(&new, &new.to);
    new.read = runs_of(&new, &new.from);
    check_bounds(&new, &new.to, &new.written);
    check_bounds(&new, &new.from, &new.read);
    check_overlaps(&new);
    new.hash = source_hash(&new);
    if (machine.moment == TW_AT_START)
        copy(&new);
    else
        spoil(&new);
    guard(&new, 1);
    if (machine.pending_count == machine.pending_room) {
        machine.pending_room = 2 * machine.pending_room + 4;
        machine.pending = grown(machine.pending, machine.pending_room, sizeof new);
    }
    machine.pending[machine.pending_count++] = new;
}

void tw_dma_wait(int channel) {
    size_t kept = 0;
    pass_time();
    for (size_t i = 0; i < machine.pending_count; i++) {
        if (machine.pending[i].channel == channel)
            finish(&machine.pending[i]);
        else
            machine.pending[kept++] = machine.pending[i];
    }
    machine.pending_count = kept;
}

/* Cores */

int tw_first_core(int cores) {
    if (machine.cores_left) {
        fprintf(stderr, "cores: TW_CORES inside TW_CORES, or one was left early\n");
        _Exit(3);
    }
    if (cores > machine.cores_room) {
        machine.cores_room = cores;
        machine.order = grown(machine.order, (size_t)cores, sizeof *machine.order);
    }
    for (int i = 0; i < cores; i++) {
        const int j = (int)random_below((size_t)i + 1);
        machine.order[i] = i;
        machine.order[i] = machine.order[j];
        machine.order[j] = i;
    }
    machine.cores_left = cores > 0 ? cores : 0;
    return tw_next_core();
}

int tw_next_core(void) {
    pass_time();
    return machine.cores_left ? machine.order[--machine.cores_left] : -1;
}

/* The program around the network */

void tw_machine_begin(enum tw_moment moment, uint64_t seed) {
    machine.moment = moment;
    machine.random = (seed + 1) * 0x9E3779B97F4A7C15u;
    if (!machine.random)
        machine.random = 1; /* zero would stay zero */
    for (int i = 0; i < 8; i++)
        random_word();
}

void tw_machine_memory(const char *name, void *start, size_t bytes) {
    machine.memories = grown(machine.memories, machine.memory_count + 1, sizeof *machine.memories);
    machine.memories[machine.memory_count++] = (struct memory){name, (uintptr_t)start, bytes};
    unsigned char *const content = start;
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t))
        fill(content + i, bytes - i < sizeof(uint64_t) ? bytes - i : sizeof(uint64_t), random_word());
}

void tw_machine_finish(void) {
    if (machine.pending_count)
        violation("nobody waited for a transfer", &machine.pending[0], NULL);
}
