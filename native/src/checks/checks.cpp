#include "checks/checks.h"

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
    case Check::bad_access:
        return "bad-access";
    case Check::stack_overflow:
        return "stack-overflow";
    case Check::unaligned_transfer:
        return "unaligned-transfer";
    case Check::double_free:
        return "double-free";
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
    return last_id_;
}

void Checks::done(uint32_t id, int64_t time) {
    const auto active = find(id);
    if (active == active_.end())
        return;
    active->finished = time;
    if (active->record != not_recorded)
        records_[active->record].finished = time;
    if (!on_)
        active_.erase(active);
}

void Checks::observed(uint32_t id) {
    const auto active = find(id);
    if (active != active_.end() && active->finished >= 0)
        active_.erase(active);
}

void Checks::event_observed(uint32_t lines) {
    for (size_t i = active_.size(); i-- > 0;)
        if (const Active &active = active_[i];
            active.finished >= 0 && active.transfer.event >= 0 && (lines >> active.transfer.event & 1) != 0)
            observed(active.id);
}

void Checks::report(Check check, std::string message, uint32_t hart, uint32_t pc, uint32_t address, int64_t time,
                    uint32_t transfer) {
    if (!on_)
        return;
    for (Finding &finding : findings_)
        if (finding.check == check && finding.pc == pc && finding.hart == hart) {
            ++finding.count;
            return;
        }
    if (findings_.size() == most_findings) {
        ++findings_left_out_;
        return;
    }
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
