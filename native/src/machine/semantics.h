// The words in which the meaning of instructions is written (isa/*.inc). They are parts of the interpreter's loop, use its
// variables and jump to its labels, so only interpreter.cpp includes them.
#pragma once

// What the semantics in the instruction tables are written in.
#define RD hart->x[op->rd]
#define RS1 hart->x[op->rs1]
#define RS2 hart->x[op->rs2]
#define RS3 hart->x[op->rs3]
#define FD hart->f[op->rd]
#define FS1 static_cast<uint32_t>(hart->f[op->rs1])
#define FS2 static_cast<uint32_t>(hart->f[op->rs2])
#define FS3 static_cast<uint32_t>(hart->f[op->rs3])
#define IMM static_cast<uint32_t>(op->imm)
#define PC (hart->code->pc_of(op))
#define SIGNED(value) static_cast<int32_t>(value)
#define UNSIGNED(value) static_cast<uint32_t>(value)
#define COUNT (hart->counters)
// Post-increment: x0 stays zero.
#define UPDATE_RS1(value)                                                                                              \
    RS1 = (value);                                                                                                     \
    hart->x[0] = 0

// An instruction that others can see is executed when it is its turn.
#define MY_TURN                                                                                                        \
    if (t > limit) [[unlikely]]                                                                                        \
    goto yield

#define DISPATCH                                                                                                       \
    if constexpr (Observed)                                                                                            \
        goto observe;                                                                                                  \
    if (line_key(op) != line) [[unlikely]]                                                                             \
        goto fetch;                                                                                                    \
    goto *labels[op->code]

#define NEXT                                                                                                           \
    t += op->cycles;                                                                                                   \
    if constexpr (!Scoreboard)                                                                                         \
        pending = op->stall;                                                                                           \
    RETIRE;                                                                                                            \
    op += op->next;                                                                                                    \
    DISPATCH

// Instructions are counted in the low half, cycles in which one waited for a result in the high half. With a scoreboard
// no instruction stalls the one right behind.
#define RETIRE retired += 1 + (Scoreboard ? 0 : uint64_t{op->stall} << 32)
#define COUNT_RETIRED                                                                                                  \
    COUNT.instructions += retired & 0xffffffff;                                                                        \
    COUNT.stall_use += retired >> 32;                                                                                  \
    retired = 0

// With a scoreboard: waits until the registers of an instruction are there. `late` is when its own result would come
// without the cycles of the pipeline.
#define WAIT_FOR_REGISTERS(operands)                                                                                   \
    [[maybe_unused]] int64_t late = t;                                                                                 \
    if constexpr (Scoreboard) {                                                                                        \
        constexpr IntegerOperands used = integer_operands(operands);                                                   \
        if constexpr (used.rs1)                                                                                        \
            late = std::max(late, hart->ready[op->rs1]);                                                               \
        if constexpr (used.rs2)                                                                                        \
            late = std::max(late, hart->ready[op->rs2]);                                                               \
        if constexpr (used.rs3)                                                                                        \
            late = std::max(late, hart->ready[op->rs3]);                                                               \
        /* Harts that count no loads do not mark destinations either. */                                               \
        if constexpr (used.rd)                                                                                         \
            if (!used.writes || hart->group->outstanding_loads != 0)                                                   \
                late = std::max(late, hart->ready[op->rd]);                                                            \
        retired += static_cast<uint64_t>(late - t) << 32;                                                              \
        t = late;                                                                                                      \
    }

#define RESULT_COMES_LATE(timing, operands)                                                                            \
    if constexpr (Scoreboard && comes_late(timing) && integer_operands(operands).writes) {                             \
        hart->ready[op->rd] = late + op->cycles + hart->group->pipeline.use[static_cast<size_t>(timing)];              \
        hart->ready[nowhere] = 0;                                                                                      \
    }

// With a scoreboard, the port takes one access at a time, and so many loads may be under way.
#define TAKE_PORT(load)                                                                                                \
    if constexpr (Scoreboard) {                                                                                        \
        late = std::max(t, hart->port_free);                                                                           \
        if (hart->group->outstanding_loads != 0 && (load || hart->near->tiles != nullptr))                             \
            late = std::max(late, hart->loads_end[hart->load_place]);                                                  \
        COUNT.stall_memory += static_cast<uint64_t>(late - t);                                                         \
        t = late;                                                                                                      \
    }

#define AFTER_QUEUED(address_)                                                                                         \
    if constexpr (Scoreboard) {                                                                                        \
        if (hart->extension != nullptr && hart->extension->holds_accesses()) [[unlikely]] {                            \
            outcome = hart->extension->before_access(address_);                                                        \
            if (outcome != Outcome::done)                                                                              \
                goto interrupted;                                                                                      \
        }                                                                                                              \
    }

#define LOAD_COMES                                                                                                     \
    if constexpr (Scoreboard) {                                                                                        \
        if (const uint32_t most = hart->group->outstanding_loads; most != 0) {                                         \
            hart->loads_end[hart->load_place] =                                                                        \
                late + 1 + hart->group->pipeline.use[static_cast<size_t>(Timing::load)];                               \
            hart->load_place = hart->load_place + 1 < most ? hart->load_place + 1 : 0;                                 \
        }                                                                                                              \
    }

// The answer of a store keeps its place among accesses under way, where it has one.
#define STORE_COMES                                                                                                    \
    if constexpr (Scoreboard) {                                                                                        \
        if (near->tiles != nullptr) {                                                                                  \
            LOAD_COMES                                                                                                 \
        }                                                                                                              \
    }

// The way of an access that took the slow path, where it leads to the memory next to the hart. Elsewhere `late` is said.
#define NEAR_WAY(atomic)                                                                                               \
    if constexpr (Scoreboard) {                                                                                        \
        const NearView *view = hart->near;                                                                             \
        if (const uint32_t place = where - view->base; view->tiles != nullptr && place < view->memory->size) {         \
            int64_t asked = t;                                                                                         \
            late = view->tiles->reach(*hart, place, atomic, asked);                                                    \
            t = asked;                                                                                                 \
        }                                                                                                              \
    }

// The bank, or the way to it, of an access next to a hart with a scoreboard.
#define NEAR_SLOT(offset, store)                                                                                       \
    if (near->tiles != nullptr) {                                                                                      \
        int64_t asked = t;                                                                                             \
        late = near->tiles->reach(*hart, offset, false, asked);                                                        \
        COUNT.stall_memory += static_cast<uint64_t>(asked - t);                                                        \
        t = asked;                                                                                                     \
    } else if (near->bank_slots != nullptr) {                                                                          \
        late = near->bank_slots[((offset) >> near->bank_shift) & near->bank_mask].take(t, t);                          \
        COUNT.stall_bank += static_cast<uint64_t>(late - t);                                                           \
        hart->port_free = late + 1;                                                                                    \
    }

#define NEAR_BANK(offset)                                                                                              \
    if (near->bank_free != nullptr) {                                                                                  \
        int64_t &bank = near->bank_free[((offset) >> 2) & near->bank_mask];                                            \
        if (bank > t) {                                                                                                \
            COUNT.stall_bank += static_cast<uint64_t>(bank - t);                                                       \
            t = bank;                                                                                                  \
        }                                                                                                              \
        bank = t + 1;                                                                                                  \
    }

// An operation in a unit that harts share waits for those that came before it. It asks before its operands are there:
// the two waits are one, as far as both last.
#define TAKE_UNIT(timing)                                                                                              \
    if constexpr (can_share_unit(timing, Scoreboard)) {                                                                \
        if (SharedUnit *unit = hart->units[static_cast<size_t>(timing)]; unit != nullptr) [[unlikely]] {               \
            MY_TURN;                                                                                                   \
            if (unit->round_robin && unit->last == hart->index && hart->stood_back != t && schedule_.others_now()) {   \
                hart->stood_back = t;                                                                                  \
                goto yield;                                                                                            \
            }                                                                                                          \
            unit->last = hart->index;                                                                                  \
            const int64_t wait = unit->take(t - pending);                                                              \
            const int64_t hidden = std::min<int64_t>(pending, wait);                                                   \
            COUNT.stall_use -= static_cast<uint64_t>(hidden);                                                          \
            COUNT.stall_unit += static_cast<uint64_t>(wait);                                                           \
            (Scoreboard ? late : t) += wait - hidden;                                                                  \
        }                                                                                                              \
    }

// Checks of an access next to the hart: one look at who was there last, where that was the hart itself.
#define CHECK_LOAD(size)                                                                                               \
    if constexpr (Observed) {                                                                                          \
        if (checking &&                                                                                                \
            (!all_are<size>(near->reads + offset, hart->epoch) || hart->x[stack_pointer] < hart->stack_low))           \
            check(*hart, op, where, *near->memory, offset, size, AccessKind::load, t);                                 \
    }

#define CHECK_STORE(size)                                                                                              \
    if constexpr (Observed) {                                                                                          \
        if (checking && (!all_are<size>(near->writes + offset, hart->epoch) ||                                         \
                         !all_are<size>(near->reads + offset, hart->epoch) || hart->stores_unwritten ||                \
                         hart->x[stack_pointer] < hart->stack_low))                                                    \
            check(*hart, op, where, *near->memory, offset, size, AccessKind::store, t);                                \
    }

// Time and value go through copies, so that the loop's own variables can stay in registers.
#define FAR(address_, size, kind, value)                                                                               \
    {                                                                                                                  \
        int64_t far_time = t;                                                                                          \
        uint64_t far_value = value;                                                                                    \
        outcome = access(*hart, op, address_, size, AccessKind::kind, far_value, far_time);                            \
        (Scoreboard ? late : t) = far_time;                                                                            \
        value = static_cast<decltype(value)>(far_value);                                                               \
        limit = past;                                                                                                  \
        if (outcome != Outcome::done) [[unlikely]]                                                                     \
            goto interrupted;                                                                                          \
    }

#define LOAD(type, address)                                                                                            \
    TAKE_PORT(true)                                                                                                    \
    MY_TURN;                                                                                                           \
    const NearView *near = hart->near;                                                                                 \
    const uint32_t where = (address);                                                                                  \
    AFTER_QUEUED(where)                                                                                                \
    uint32_t value = 0;                                                                                                \
    ++COUNT.loads;                                                                                                     \
    if (const uint32_t offset = where - near->base; offset < near->size && where % sizeof(type) == 0) [[likely]] {     \
        if constexpr (Scoreboard) {                                                                                    \
            NEAR_SLOT(offset, false)                                                                                   \
        } else {                                                                                                       \
            NEAR_BANK(offset)                                                                                          \
        }                                                                                                              \
        CHECK_LOAD(sizeof(type))                                                                                       \
        type loaded;                                                                                                   \
        std::memcpy(&loaded, near->data + offset, sizeof loaded);                                                      \
        value = static_cast<uint32_t>(loaded);                                                                         \
    } else {                                                                                                           \
        FAR(where, sizeof(type), load, value);                                                                         \
        value = static_cast<uint32_t>(static_cast<type>(value));                                                       \
        NEAR_WAY(false)                                                                                                \
    }                                                                                                                  \
    LOAD_COMES

#define STORE(type, address, stored)                                                                                   \
    TAKE_PORT(false)                                                                                                   \
    MY_TURN;                                                                                                           \
    const NearView *near = hart->near;                                                                                 \
    const uint32_t where = (address);                                                                                  \
    AFTER_QUEUED(where)                                                                                                \
    uint32_t value = (stored);                                                                                         \
    ++COUNT.stores;                                                                                                    \
    if (const uint32_t offset = where - near->base; offset < near->size && where % sizeof(type) == 0) [[likely]] {     \
        if constexpr (Scoreboard) {                                                                                    \
            NEAR_SLOT(offset, true)                                                                                    \
        } else {                                                                                                       \
            NEAR_BANK(offset)                                                                                          \
        }                                                                                                              \
        CHECK_STORE(sizeof(type))                                                                                      \
        const type narrow = static_cast<type>(value);                                                                  \
        std::memcpy(near->data + offset, &narrow, sizeof narrow);                                                      \
    } else {                                                                                                           \
        FAR(where, sizeof(type), store, value);                                                                        \
        NEAR_WAY(false)                                                                                                \
    }                                                                                                                  \
    STORE_COMES

#define EVENT_LOAD(address)                                                                                            \
    MY_TURN;                                                                                                           \
    uint32_t value = 0;                                                                                                \
    FAR(address, 4, event_load, value);                                                                                \
    RD = value

#define BRANCH(condition)                                                                                              \
    ++COUNT.branches;                                                                                                  \
    if (condition) {                                                                                                   \
        ++COUNT.taken;                                                                                                 \
        t += op->cycles + op->rd;                                                                                      \
        RETIRE;                                                                                                        \
        op += op->imm >> 1;                                                                                            \
        pending = 0;                                                                                                   \
        if (t > horizon) [[unlikely]]                                                                                  \
            goto yield;                                                                                                \
        DISPATCH;                                                                                                      \
    }

#define LINK RD = PC + static_cast<uint32_t>(length_of(op)) * 2

#define JUMP(address)                                                                                                  \
    {                                                                                                                  \
        const uint32_t to = (address);                                                                                 \
        ++COUNT.jumps;                                                                                                 \
        t += op->cycles;                                                                                               \
        RETIRE;                                                                                                        \
        if constexpr (Observed) {                                                                                      \
            if (checking)                                                                                              \
                checks_.followed(*hart, *op, PC);                                                                      \
        }                                                                                                              \
        const Op *destination = instruction_at(*hart, to);                                                             \
        if (destination == nullptr) [[unlikely]] {                                                                     \
            fail(*hart, op, "bad-jump", "jump to an address without memory for instructions", to);                     \
            goto stopped;                                                                                              \
        }                                                                                                              \
        op = destination;                                                                                              \
        pending = 0;                                                                                                   \
        if (t > horizon) [[unlikely]]                                                                                  \
            goto yield;                                                                                                \
        DISPATCH;                                                                                                      \
    }

#define DIVIDE(divisor) (Scoreboard ? late : t) += divide_wait(hart->group->divide, RS1, divisor)

#define LOOP (hart->loops[op->rd])
#define LOOP_SETUP(start, end, count) set_loop(*hart, op->rd, start, end, count)

// Instructions that only extensions of harts know.
#define SNITCH                                                                                                         \
    MY_TURN;                                                                                                           \
    if (hart->extension == nullptr) [[unlikely]]                                                                       \
        goto l_illegal;                                                                                                \
    uint32_t result = 0;                                                                                               \
    int64_t special_time = t;                                                                                          \
    outcome = hart->extension->special(op, RS1, op->rs2 < 32 ? RS2 : 0, result, special_time);                         \
    t = special_time;                                                                                                  \
    limit = past;                                                                                                      \
    if (outcome != Outcome::done) [[unlikely]]                                                                         \
        goto interrupted;                                                                                              \
    RD = result

// Floating-point instructions of 64-bit registers: the hart's unit executes them, or else the hart at once.
#define OFFLOAD(operand)                                                                                               \
    if (hart->extension == nullptr) [[unlikely]] {                                                                     \
        if (!execute_float(*hart, *op, operand))                                                                       \
            goto l_illegal;                                                                                            \
    } else {                                                                                                           \
        if (hart->extension->is_queueing())                                                                            \
            MY_TURN;                                                                                                   \
        int64_t offload_time = t;                                                                                      \
        outcome = hart->extension->offload(op, operand, offload_time);                                                 \
        t = offload_time;                                                                                              \
        if (outcome != Outcome::done) [[unlikely]]                                                                     \
            goto interrupted;                                                                                          \
    }

#define FLOAT_ACCESS(size_, kind_, address_)                                                                           \
    MY_TURN;                                                                                                           \
    if (hart->extension == nullptr) {                                                                                  \
        uint64_t moved = kind_ == AccessKind::store ? hart->f[op->rs2] : 0;                                            \
        int64_t moved_time = t;                                                                                        \
        outcome = access(*hart, op, address_, size_, kind_, moved, moved_time);                                        \
        t = moved_time;                                                                                                \
        if (outcome != Outcome::done) [[unlikely]]                                                                     \
            goto interrupted;                                                                                          \
        if (kind_ == AccessKind::load)                                                                                 \
            hart->f[op->rd] = size_ == 8 ? moved : moved | ~uint64_t{0} << (8 * (size_ % 8));                          \
    } else {                                                                                                           \
        OFFLOAD(address_)                                                                                              \
    }                                                                                                                  \
    limit = past
#define FLOAT_LOAD(size)                                                                                               \
    ++COUNT.loads;                                                                                                     \
    FLOAT_ACCESS(size, AccessKind::load, RS1 + IMM)
#define FLOAT_STORE(size)                                                                                              \
    ++COUNT.stores;                                                                                                    \
    FLOAT_ACCESS(size, AccessKind::store, RS1 + IMM)

#define CSR_READ                                                                                                       \
    MY_TURN;                                                                                                           \
    if constexpr (Scoreboard) {                                                                                        \
        if (hart->extension != nullptr) {                                                                              \
            int64_t csr_time = t;                                                                                      \
            outcome = hart->extension->before_csr(op, IMM, csr_time);                                                  \
            t = csr_time;                                                                                              \
            if (outcome != Outcome::done)                                                                              \
                goto interrupted;                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    COUNT_RETIRED;                                                                                                     \
    uint32_t old = 0;                                                                                                  \
    if (!read_csr(*hart, IMM, counter_time(*hart, op, t), old))                                                        \
    goto l_illegal

#define CSR_WRITE(written)                                                                                             \
    if (!write_csr(*hart, IMM, t, written))                                                                            \
    goto l_illegal

#define TRAP(cause, value)                                                                                             \
    {                                                                                                                  \
        MY_TURN;                                                                                                       \
        const Op *handler = trap(*hart, op, cause, value);                                                             \
        if (handler == nullptr)                                                                                        \
            goto stopped;                                                                                              \
        op = handler;                                                                                                  \
        t += 2;                                                                                                        \
        DISPATCH;                                                                                                      \
    }

#define RETURN_FROM_TRAP                                                                                               \
    MY_TURN;                                                                                                           \
    leave_trap(*hart);                                                                                                 \
    JUMP(hart->mepc)

// Until accesses before it are done.
#define FENCE                                                                                                          \
    if constexpr (Scoreboard) {                                                                                        \
        late = std::max(t, hart->port_free);                                                                           \
        for (uint32_t i = 0; i < hart->group->outstanding_loads; ++i)                                                  \
            late = std::max(late, hart->loads_end[i]);                                                                 \
        COUNT.stall_memory += static_cast<uint64_t>(late - t);                                                         \
        t = late;                                                                                                      \
    }

#define FORGET_CODE                                                                                                    \
    {                                                                                                                  \
        MY_TURN;                                                                                                       \
        const int32_t length = length_of(op);                                                                          \
        t += op->cycles;                                                                                               \
        RETIRE;                                                                                                        \
        forget_code();                                                                                                 \
        op += op->code == op_undecoded ? length : op->next; /* decoded again at the end of a hardware loop */          \
        DISPATCH;                                                                                                      \
    }

#define WAIT_FOR_INTERRUPT                                                                                             \
    MY_TURN;                                                                                                           \
    if (hart->pulses != 0) {                                                                                           \
        --hart->pulses;                                                                                                \
    } else if ((hart->interrupt & hart->mie) == 0) {                                                                   \
        hart->state = HartState::asleep;                                                                               \
        goto sleeping;                                                                                                 \
    }

// Floating-point instructions that set flags, and among them those that round: by their own mode or by that of fcsr.
#define FLAGGED(...)                                                                                                   \
    {                                                                                                                  \
        FloatState state{rounding_mode::nearest_even, hart->fcsr & 31};                                                \
        __VA_ARGS__;                                                                                                   \
        hart->fcsr |= state.flags;                                                                                     \
    }

#define ROUNDED(...)                                                                                                   \
    {                                                                                                                  \
        const uint32_t rounding = op->imm == rounding_dynamic ? hart->fcsr >> 5 : IMM;                                 \
        if (rounding > rounding_mode::nearest_away) [[unlikely]]                                                       \
            goto l_illegal;                                                                                            \
        FloatState state{rounding, hart->fcsr & 31};                                                                   \
        __VA_ARGS__;                                                                                                   \
        hart->fcsr |= state.flags;                                                                                     \
    }

// Atomic instructions are rare: all their accesses take the slow way, which looks after reservations.
#define ATOMIC(cause)                                                                                                  \
    const uint32_t where = RS1;                                                                                        \
    if (where % 4 != 0) [[unlikely]]                                                                                   \
        TRAP(cause, where)                                                                                             \
    TAKE_PORT(true)                                                                                                    \
    MY_TURN;                                                                                                           \
    if constexpr (Observed) {                                                                                          \
        if (checking)                                                                                                  \
            check_atomic(*hart, where);                                                                                \
    }                                                                                                                  \
    static_cast<void>(0)

#define LOAD_RESERVED                                                                                                  \
    ATOMIC(cause_load_misaligned);                                                                                     \
    uint32_t value = 0;                                                                                                \
    ++COUNT.loads;                                                                                                     \
    FAR(where, 4, load, value);                                                                                        \
    NEAR_WAY(false)                                                                                                    \
    LOAD_COMES                                                                                                         \
    reserve(*hart, where);                                                                                             \
    RD = value

#define STORE_CONDITIONAL                                                                                              \
    ATOMIC(cause_store_misaligned);                                                                                    \
    const bool reserved = release(*hart, where);                                                                       \
    if (reserved) {                                                                                                    \
        uint32_t value = RS2;                                                                                          \
        ++COUNT.stores;                                                                                                \
        FAR(where, 4, store, value);                                                                                   \
    }                                                                                                                  \
    NEAR_WAY(false)                                                                                                    \
    LOAD_COMES                                                                                                         \
    RD = reserved ? 0 : 1

#define AMO(changed)                                                                                                   \
    ATOMIC(cause_store_misaligned);                                                                                    \
    const uint32_t operand = RS2;                                                                                      \
    uint32_t old = 0;                                                                                                  \
    ++COUNT.loads;                                                                                                     \
    ++COUNT.stores;                                                                                                    \
    FAR(where, 4, load, old);                                                                                          \
    uint32_t value = (changed);                                                                                        \
    FAR(where, 4, store, value);                                                                                       \
    NEAR_WAY(true)                                                                                                     \
    LOAD_COMES                                                                                                         \
    RD = old
