// What harts know of each other and of transfers: every way in which one of them is told that something is done.
#include "checks/checks.h"

#include "isa/decode.h"
#include "machine/hart.h"
#include "machine/memory.h"

#include <algorithm>
#include <stdexcept>

namespace tilewright {

void Checks::switch_on(bool on) {
    on_ = on;
    const size_t count = harts_.size() + threads_.size();
    if (count > most_threads)
        throw std::invalid_argument("checks are for at most " + std::to_string(most_threads) +
                                    " harts and threads of devices");
    clocks_.assign(harts_.size(), Clock(count, 0));
    shown_ = clocks_;
    for (Hart &hart : harts_) {
        clocks_[hart.index][hart.index] = 1;
        hart.epoch = on ? epoch_of(hart.index, 1) : no_epoch;
    }
}

uint32_t Checks::add_thread(const std::string &device, std::string wait, bool in_order) {
    threads_.push_back({device, std::move(wait), in_order});
    return static_cast<uint32_t>(harts_.size() + threads_.size() - 1);
}

// What a hart does from now on, those that it has told do not know of.
void Checks::tick(const Hart &hart) {
    uint32_t &own = clocks_[hart.index][hart.index];
    own = std::min(own + 1, last_clock);
    harts_[hart.index].epoch = epoch_of(hart.index, own);
}

void Checks::release(const Hart &hart, Clock &clock) {
    if (!on_)
        return;
    join(clock, clocks_[hart.index]);
    tick(hart);
}

void Checks::acquire(const Hart &hart, const Clock &clock) {
    if (on_)
        join(clocks_[hart.index], clock);
}

void Checks::add_flag(uint32_t address, uint32_t size) {
    for (const auto &memory : memories_)
        if (on_ && memory->holds(address, size)) {
            std::fill_n(memory->reads + (address - memory->base), size, of_flag);
            std::fill_n(memory->writes + (address - memory->base), size, of_flag);
        }
}

void Checks::join_thread(const Hart &hart, uint32_t thread, uint32_t clock) {
    Clock &known = clocks_[hart.index];
    if (known[thread] >= clock)
        return;
    for (const Recent &recent : recent_)
        if (thread_of(recent.epoch) == thread && clock_of(recent.epoch) <= clock && !knows(known, recent.epoch))
            join(known, recent.clock);
    known[thread] = clock;
}

void Checks::ended(const Hart &hart, uint32_t id) {
    if (const Recent *recent = find(id); on_ && recent != nullptr && recent->finished >= 0)
        join_thread(hart, thread_of(recent->epoch), clock_of(recent->epoch));
}

bool Checks::only_outstanding(const Hart &hart, uint32_t thread) const {
    for (size_t i = 0; i < threads_.size(); ++i)
        if (i + harts_.size() != thread && threads_[i].device == threads_[thread - harts_.size()].device &&
            threads_[i].asked > clocks_[hart.index][i + harts_.size()])
            return false;
    return true;
}

void Checks::end_shown(const Hart &hart, uint32_t thread) {
    if (!on_ || clocks_[hart.index][thread] >= thread_at(thread).done)
        return;
    shown_[hart.index][thread] = thread_at(thread).done;
    if (only_outstanding(hart, thread))
        given_back(hart, thread);
}

void Checks::given_back(const Hart &hart, uint32_t thread) {
    if (on_)
        join_thread(hart, thread, shown_[hart.index][thread]);
}

void Checks::event_seen(const Hart &hart, const EndsTold &told) {
    for (size_t i = 0; on_ && i < recent_.size(); ++i) {
        const Recent &recent = recent_[i];
        const uint32_t thread = thread_of(recent.epoch), clock = clock_of(recent.epoch);
        if (recent.finished < 0 || recent.end > told.until || (recent.transfer.events & told.lines) == 0 ||
            knows(clocks_[hart.index], recent.epoch))
            continue;
        shown_[hart.index][thread] = std::max(shown_[hart.index][thread], clock);
        if (thread_at(thread).in_order || only_outstanding(hart, thread))
            join_thread(hart, thread, clock);
    }
}

void Checks::followed(Hart &hart, const Op &op, uint32_t pc) {
    constexpr uint32_t return_address = 1, alternate = 5; // registers, by convention
    const auto is_link = [](uint32_t number) { return number == return_address || number == alternate; };
    if (is_link(op.rd))
        hart.frame = places_.called(hart.frame, pc);
    else if (op.code == op_jalr && is_link(op.rs1))
        hart.frame = places_.caller(hart.frame);
}

void Checks::written_from_outside(const Range &range) {
    shadow_.set(range, byte_written);
    for (const auto &memory : memories_)
        if (on_ && memory->holds(range.begin, range.end - range.begin))
            for (uint32_t at = range.begin - memory->base; at < range.end - memory->base; ++at)
                if (memory->writes[at] != of_flag)
                    memory->writes[at] = memory->reads[at] = no_epoch;
}

} // namespace tilewright
