// Transfers, from when they are asked for until they end. Findings: each kind once for an instruction.
#include "checks/checks.h"

#include "machine/hart.h"
#include "machine/memory.h"

#include <algorithm>

namespace tilewright {

const char *name_of(Check check) {
    switch (check) {
    case Check::uninitialised_read:
        return "uninitialised-read";
    case Check::unused_read:
        return "unused-read";
    case Check::race:
        return "race";
    case Check::overlap:
        return "overlap";
    case Check::stack_overflow:
        return "stack-overflow";
    case Check::unaligned_transfer:
        return "unaligned-transfer";
    case Check::double_free:
        return "double-free";
    case Check::stream:
        return "stream";
    case Check::unboxed:
        return "unboxed-float";
    case Check::unfenced:
        return "unfenced-store";
    case Check::count:
        break;
    }
    return "";
}

bool is_warning(Check check) { return check == Check::unused_read || check == Check::unaligned_transfer; }

uint32_t Checks::started(Transfer transfer) {
    if (!wants_transfers())
        return no_transfer;
    recent_.push_back({++last_id_, std::move(transfer), -1, 0, not_recorded, no_epoch, {}});
    Recent &recent = recent_.back();
    if (recording_ && records_.size() < most_records) {
        recent.record = records_.size();
        records_.push_back(record_of(recent));
    } else if (recording_) {
        ++transfers_left_out_;
    }
    if (on_) {
        const Hart &hart = harts_[recent.transfer.hart];
        Thread &thread = thread_at(recent.transfer.thread);
        Clock known = clocks_[hart.index];
        if (thread.in_order)
            join(known, thread.last);
        thread.asked = std::min(thread.asked + 1, last_clock);
        recent.epoch = epoch_of(recent.transfer.thread, thread.asked);
        recent.clock = known;
        recent.clock[recent.transfer.thread] = thread.asked;
        thread.last = recent.clock;
        visit(recent, known);
        tick(hart);
    }
    forget_oldest();
    return last_id_;
}

void Checks::forget_oldest() {
    while (recent_.size() > most_recent && recent_.front().finished >= 0)
        recent_.pop_front();
}

void Checks::done(uint32_t id, int64_t time) {
    Recent *recent = find(id);
    if (recent == nullptr)
        return;
    recent->finished = time;
    recent->end = ++ends_;
    if (recent->record != not_recorded)
        records_[recent->record].finished = time;
    if (!on_)
        return;
    Thread &thread = thread_at(recent->transfer.thread);
    thread.done = std::max(thread.done, clock_of(recent->epoch));
    const Transfer &transfer = recent->transfer;
    if (transfer.copies) {
        shadow_.copy_written(transfer.reads, transfer.writes);
        return;
    }
    for (const Range &range : transfer.reads)
        if (const auto unwritten = shadow_.first_without(range, byte_written)) {
            report(Check::uninitialised_read, transfer.what + " uses bytes that were never written",
                   harts_[transfer.hart], transfer.pc, *unwritten, time, id);
            break;
        }
    for (const Range &range : transfer.writes)
        shadow_.set(range, byte_written);
}

bool Checks::found_again(Check check, uint32_t hart, uint32_t pc) {
    for (Finding &finding : findings_)
        // A stack that has overflowed is used by many instructions.
        if (finding.check == check && (check == Check::stack_overflow ? finding.hart == hart : finding.pc == pc)) {
            ++finding.count;
            return true;
        }
    return false;
}

Finding *Checks::add(Check check, std::string message, const Hart &hart, uint32_t pc, uint32_t address, int64_t time) {
    const bool is_race = check == Check::race || check == Check::overlap;
    if (!on_ || (is_race && !racing_) || found_again(check, hart.index, pc))
        return nullptr;
    size_t &kept = kept_[static_cast<size_t>(check)];
    if (kept == most_findings) {
        ++findings_left_out_;
        return nullptr;
    }
    ++kept;
    findings_.push_back({check, std::move(message), hart.index, pc, address, time, 1, places_.stack(hart.frame)});
    return &findings_.back();
}

void Checks::report(Check check, std::string message, const Hart &hart, uint32_t pc, uint32_t address, int64_t time,
                    uint32_t transfer) {
    Finding *finding = add(check, std::move(message), hart, pc, address, time);
    if (const Recent *recent = find(transfer); finding != nullptr && recent != nullptr)
        describe(*finding, *recent);
}

void Checks::describe(Finding &finding, const Recent &recent) const {
    finding.transfer = record_of(recent);
    for (const auto *ranges : {&recent.transfer.reads, &recent.transfer.writes})
        for (const Range &range : *ranges)
            if (range.holds(finding.address))
                finding.range = range;
}

Checks::Recent *Checks::find(uint32_t id) {
    const size_t index = recent_.empty() ? 0 : id - recent_.front().id;
    return index < recent_.size() ? &recent_[index] : nullptr;
}

const Checks::Recent *Checks::find_epoch(Epoch epoch) const {
    const auto found = std::ranges::find(recent_, epoch, &Recent::epoch);
    return found != recent_.end() ? &*found : nullptr;
}

TransferRecord Checks::record_of(const Recent &recent) {
    const Transfer &transfer = recent.transfer;
    return {recent.id,   transfer.what,    transfer.lane,   transfer.hart,
            transfer.pc, transfer.started, recent.finished, transfer.bytes};
}

} // namespace tilewright
