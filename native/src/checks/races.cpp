// Accesses to the same bytes, of which at least one writes and neither is known to come before the other.
#include "checks/checks.h"

#include "machine/hart.h"
#include "machine/memory.h"

#include <algorithm>

namespace tilewright {

namespace {

std::string bytes(uint32_t count) { return count == 1 ? "1 byte" : std::to_string(count) + " bytes"; }

} // namespace

uint32_t HartAccess::address() const { return memory.base + offset; }
uint8_t *HartAccess::shadow() const { return memory.shadow + offset; }

std::optional<Checks::Conflict> Checks::read(const Visit &visit, uint32_t place) {
    std::optional<Conflict> conflict;
    Epoch *reads = visit.memory.reads + visit.offset, *writes = visit.memory.writes + visit.offset;
    // Neighbours mostly have the same past.
    Epoch last_write = no_epoch, last_read = no_epoch, now = visit.epoch;
    for (uint32_t i = 0; i < visit.size; ++i) {
        const uint32_t offset = visit.offset + i;
        if (writes[i] == of_flag)
            continue;
        if (writes[i] != last_write) {
            last_write = writes[i];
            if (!conflict && !knows(visit.clock, last_write) && last_write != visit.epoch)
                conflict = {last_write, true, visit.memory.base + offset, visit.memory.write_places[offset / 4]};
        }
        if (reads[i] != last_read) {
            last_read = reads[i];
            now = readers_.with(last_read, visit.epoch, visit.clock);
        }
        if (reads[i] != now) {
            reads[i] = now;
            visit.memory.read_places[offset / 4] = place;
        }
    }
    if (readers_.full())
        forget_readers();
    return conflict;
}

std::optional<Checks::Conflict> Checks::written(const Visit &visit, uint32_t place) {
    std::optional<Conflict> conflict;
    Epoch *reads = visit.memory.reads + visit.offset, *writes = visit.memory.writes + visit.offset;
    Epoch last_write = no_epoch, last_read = no_epoch;
    for (uint32_t i = 0; i < visit.size; ++i) {
        const uint32_t offset = visit.offset + i;
        if (writes[i] == of_flag)
            continue;
        if (!conflict && writes[i] != last_write) {
            last_write = writes[i];
            if (!knows(visit.clock, last_write) && last_write != visit.epoch)
                conflict = {last_write, true, visit.memory.base + offset, visit.memory.write_places[offset / 4]};
        }
        if (!conflict && reads[i] != last_read) {
            last_read = reads[i];
            const uint32_t reader = visit.memory.read_places[offset / 4];
            const Epoch unknown = readers_.unknown(last_read, visit.clock, visit.epoch, places_[reader].hart);
            if (unknown != no_epoch)
                conflict = {unknown, false, visit.memory.base + offset, reader};
        }
        // Who writes has read as well: so a look at the readers alone tells that nobody else has been here since.
        writes[i] = reads[i] = visit.epoch;
        visit.memory.write_places[offset / 4] = visit.memory.read_places[offset / 4] = place;
    }
    return conflict;
}

void Checks::forget_readers() {
    std::vector<bool> used(readers_.count());
    for (const auto &memory : memories_)
        for (uint32_t at = 0; at < memory->size; ++at)
            if (const Epoch readers = memory->reads[at]; (readers & several) != 0 && readers != of_flag)
                used[readers & ~several] = true;
    readers_.keep(used);
}

void Checks::visit(Recent &recent, const Clock &known) {
    for (const bool writes : {false, true})
        for (const Range &range : writes ? recent.transfer.writes : recent.transfer.reads)
            for (const auto &memory : memories_) {
                if (!memory->holds(range.begin, range.end - range.begin))
                    continue;
                const Visit visit{known, recent.epoch, *memory, range.begin - memory->base, range.end - range.begin};
                if (const auto conflict = writes ? written(visit, 0) : read(visit, 0))
                    report_transfer(recent, writes, *conflict);
            }
}

void Checks::report_race(const HartAccess &access, bool store, const Conflict &conflict) {
    // Before words are put together, which takes time.
    if (found_again(Check::race, access.hart.index, access.pc))
        return;
    Finding *finding = add(Check::race, (store ? "writes " : "reads ") + bytes(access.size) + " that ", access.hart,
                           access.pc, conflict.address, access.time);
    if (finding != nullptr)
        explain(*finding, conflict, "");
}

void Checks::report_transfer(const Recent &recent, bool writes, const Conflict &conflict) {
    const Transfer &transfer = recent.transfer;
    const bool by_hart = is_hart(thread_of(conflict.with));
    Finding *finding =
        add(by_hart ? Check::race : Check::overlap, transfer.what + (writes ? " writes" : " reads") + " bytes that ",
            harts_[transfer.hart], transfer.pc, conflict.address, transfer.started);
    if (finding == nullptr)
        return;
    explain(*finding, conflict, ", before it starts the transfer");
    if (by_hart)
        describe(*finding, recent);
}

void Checks::explain(Finding &finding, const Conflict &conflict, const std::string &before) {
    const uint32_t thread = thread_of(conflict.with);
    const std::string here = hart_name(finding.hart);
    const std::string way = "a barrier, event, mutex or flag from ";
    if (is_hart(thread)) {
        finding.message += hart_name(thread) + (conflict.wrote ? " has written" : " has read") +
                           ", and nothing says that it was first";
        finding.missing = way + hart_name(thread) + " behind its access to " + here + before;
        const Place &place = places_[conflict.place];
        finding.other = place.hart == thread && place.pc != 0
                            ? OtherAccess{thread, place.pc, places_.stack(place.frame)}
                            : OtherAccess{thread};
        return;
    }
    const Recent *recent = find_epoch(conflict.with);
    const std::string what = recent != nullptr ? recent->transfer.what : thread_at(thread).device;
    const bool runs = recent != nullptr && recent->finished < 0;
    finding.message += what + (runs ? " is still " : " ");
    finding.message += conflict.wrote ? (runs ? "writing" : "wrote") : (runs ? "reading" : "read");
    if (recent != nullptr)
        describe(finding, *recent);
    const auto knower =
        std::ranges::find_if(harts_, [&](const Hart &hart) { return knows(clocks_[hart.index], conflict.with); });
    if (knower == harts_.end()) {
        finding.message += runs ? "" : ", without having waited for its end";
        finding.missing = thread_at(thread).wait;
    } else {
        finding.message += ", and nothing says that it was first";
        finding.missing = way + hart_name(knower->index) + ", which has waited for it, to " + here + before;
    }
}

void Checks::end_of_program(const Hart &hart, uint32_t pc, int64_t time) {
    for (const Recent &recent : recent_) {
        if (!on_ || knows(clocks_[hart.index], recent.epoch))
            continue;
        const auto &ranges = recent.transfer.writes.empty() ? recent.transfer.reads : recent.transfer.writes;
        Finding *finding =
            add(Check::race, "", harts_[hart.index], pc, ranges.empty() ? 0 : ranges.front().begin, time);
        if (finding == nullptr)
            continue;
        explain(*finding, {recent.epoch, !recent.transfer.writes.empty(), finding->address, 0}, "");
        finding->message = "ends the program without having been told of the end of " + recent.transfer.what;
    }
}

std::string Checks::hart_name(uint32_t hart) const {
    const HartGroup &group = *harts_[hart].group;
    return group.count == 1 ? group.name : group.name + " " + std::to_string(hart - group.first);
}

} // namespace tilewright
