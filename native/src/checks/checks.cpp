// Transfers: which bytes are theirs, and until when. Findings: each kind once for an instruction.
#include "checks/checks.h"

#include "machine/hart.h"

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
    case Check::count:
        break;
    }
    return "";
}

bool is_warning(Check check) { return check == Check::unused_read || check == Check::unaligned_transfer; }

uint32_t Checks::started(Transfer transfer) {
    if (!wants_transfers())
        return no_transfer;
    Active active{++last_id_, std::move(transfer), -1, not_recorded};
    if (recording_ && records_.size() < most_records) {
        active.record = records_.size();
        records_.push_back(record_of(active));
    } else if (recording_) {
        ++transfers_left_out_;
    }
    active_.push_back(std::move(active));
    if (on_) {
        check_overlap(active_.back());
        claim(active_.back().transfer);
        forget_oldest();
    }
    return last_id_;
}

// A program that never looks whether its transfers have ended must not make the machine slower and slower.
void Checks::forget_oldest() {
    if (active_.size() <= most_active)
        return;
    const auto oldest = std::ranges::find_if(active_, [](const Active &active) { return active.finished >= 0; });
    if (oldest != active_.end())
        observed(oldest->id);
}

void Checks::done(uint32_t id, int64_t time) {
    const auto active = find(id);
    if (active == active_.end())
        return;
    active->finished = time;
    if (active->record != not_recorded)
        records_[active->record].finished = time;
    if (!on_) {
        active_.erase(active);
        return;
    }
    const Transfer &transfer = active->transfer;
    if (transfer.copies) {
        shadow_.copy_written(transfer.reads, transfer.writes);
        return;
    }
    for (const Range &range : transfer.reads)
        if (const auto unwritten = shadow_.first_without(range, byte_written)) {
            report(Check::uninitialised_read, transfer.what + " uses bytes that were never written", transfer.hart,
                   transfer.pc, *unwritten, time, id);
            break;
        }
    for (const Range &range : transfer.writes)
        shadow_.set(range, byte_written);
}

void Checks::observed(uint32_t id) {
    const auto active = find(id);
    if (active == active_.end() || active->finished < 0)
        return;
    const std::string lane = active->transfer.in_order ? active->transfer.lane : "";
    // Those before it in the same order have ended as well.
    release_if([&](const Active &each) {
        return each.id == id || (each.id < id && each.finished >= 0 && each.transfer.lane == lane);
    });
}

void Checks::event_observed(uint32_t lines) {
    release_if([&](const Active &each) { return each.finished >= 0 && (lines & each.transfer.events) != 0; });
}

void Checks::release_if(const std::function<bool(const Active &)> &over) {
    bool any = false;
    for (const Active &each : active_)
        if (over(each)) {
            unclaim(each.transfer);
            any = true;
        }
    if (!any)
        return;
    std::erase_if(active_, over);
    // Bytes may belong to several transfers that read them, or to some that should not share them.
    for (const Active &each : active_)
        claim(each.transfer);
}

void Checks::claim(const Transfer &transfer) {
    for (const Range &range : transfer.reads)
        shadow_.set(range, byte_source);
    for (const Range &range : transfer.writes)
        shadow_.set(range, byte_target);
}

void Checks::unclaim(const Transfer &transfer) {
    for (const auto *ranges : {&transfer.reads, &transfer.writes})
        for (const Range &range : *ranges)
            shadow_.clear(range, byte_claimed);
}

void Checks::check_overlap(const Active &active) {
    const Transfer &transfer = active.transfer;
    const auto behind = [&](const Active &other) { return &other != &active && goes_after(transfer, other.transfer); };
    // What is asked for earlier in the same order does not matter.
    for (const Active &other : active_)
        if (behind(other))
            unclaim(other.transfer);
    for (const Active &other : active_)
        if (&other != &active && !behind(other))
            claim(other.transfer);
    for (const auto *ranges : {&transfer.reads, &transfer.writes}) {
        const bool writes = ranges == &transfer.writes;
        for (const Range &range : *ranges)
            if (const auto shared = shadow_.first_with(range, writes ? byte_claimed : byte_target)) {
                report_overlap(active, *shared, writes);
                break;
            }
    }
    for (const Active &other : active_)
        if (behind(other))
            claim(other.transfer);
}

void Checks::report_overlap(const Active &active, uint32_t address, bool writes) {
    const Transfer &transfer = active.transfer;
    for (const Active &other : active_) {
        const bool in_writes = holds(other.transfer.writes, address);
        if (&other == &active || goes_after(transfer, other.transfer) ||
            !(in_writes || (writes && holds(other.transfer.reads, address))))
            continue;
        report(Check::overlap,
               transfer.what + " " + (writes ? "writes" : "reads") + " bytes that " + said_of(other, in_writes),
               transfer.hart, transfer.pc, address, transfer.started, other.id);
        return;
    }
}

bool Checks::goes_after(const Transfer &transfer, const Transfer &other) {
    return transfer.in_order && transfer.lane == other.lane;
}

std::string Checks::said_of(const Active &active, bool writes) {
    if (active.finished < 0)
        return active.transfer.what + (writes ? " is still writing" : " is still reading");
    return active.transfer.what + (writes ? " wrote" : " read") + ", without having waited for its end";
}

bool Checks::holds(const std::vector<Range> &ranges, uint32_t address) {
    return std::ranges::any_of(ranges, [&](const Range &range) { return range.holds(address); });
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

void Checks::report(Check check, std::string message, uint32_t hart, uint32_t pc, uint32_t address, int64_t time,
                    uint32_t transfer) {
    if (!on_)
        return;
    if (found_again(check, hart, pc))
        return;
    size_t &kept = kept_[static_cast<size_t>(check)];
    if (kept == most_findings) {
        ++findings_left_out_;
        return;
    }
    ++kept;
    Finding finding{check, std::move(message), hart, pc, address, time, 1};
    if (const auto active = find(transfer); active != active_.end()) {
        finding.transfer = record_of(*active);
        for (const auto *ranges : {&active->transfer.reads, &active->transfer.writes})
            for (const Range &range : *ranges)
                if (range.holds(address))
                    finding.range = range;
    }
    findings_.push_back(std::move(finding));
}

std::vector<Checks::Active>::iterator Checks::find(uint32_t id) { return std::ranges::find(active_, id, &Active::id); }

TransferRecord Checks::record_of(const Active &active) {
    const Transfer &transfer = active.transfer;
    return {active.id,   transfer.what,    transfer.lane,   transfer.hart,
            transfer.pc, transfer.started, active.finished, transfer.bytes};
}

} // namespace tilewright
