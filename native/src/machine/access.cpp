// Loads and stores that are not aligned ones of the memory next to the hart: other memories, aliases, devices.
#include "machine/machine.h"

namespace tilewright {

Outcome Machine::fail(Hart &hart, const Op *op, const char *kind, std::string message, uint32_t address) {
    const uint32_t pc = op != nullptr && hart.code != nullptr ? hart.code->pc_of(op) : address;
    stop_with(Fault{kind, std::move(message), hart.index, pc, address, now()});
    return Outcome::fault;
}

const Alias *Machine::alias_of(const Hart &hart, uint32_t address) const {
    for (const Alias &alias : aliases_)
        if (address - alias.base < alias.size &&
            (alias.group < 0 || groups_[static_cast<size_t>(alias.group)].get() == hart.group))
            return &alias;
    return nullptr;
}

Outcome Machine::access(Hart &hart, const Op *op, uint32_t address, uint32_t size, AccessKind kind, uint64_t &value,
                        int64_t &time) {
    const int64_t asked = time;
    const Outcome outcome = access_anywhere(hart, op, address, size, kind, value, time);
    // Cycles beyond those of an access next to the hart.
    const auto wait = static_cast<uint64_t>(time - asked);
    if (wait != 0) {
        ++(kind == AccessKind::store ? hart.counters.far_stores : hart.counters.far_loads);
        (kind == AccessKind::store ? hart.counters.stall_far_stores : hart.counters.stall_far_loads) += wait;
    }
    return outcome;
}

Outcome Machine::access_anywhere(Hart &hart, const Op *op, uint32_t address, uint32_t size, AccessKind kind,
                                 uint64_t &value, int64_t &time) {
    bool test_and_set = false;
    const uint32_t where = address;
    if (hart.group->pipeline.scoreboard && address % size != 0)
        return fail(hart, op, "misaligned-access", "an access that is no multiple of its size traps on this hart",
                    address);
    if (const Alias *alias = alias_of(hart, address)) {
        address = alias->shown(address);
        test_and_set = alias->test_and_set && kind == AccessKind::load;
    }
    for (const auto &memory : memories_)
        if (memory->holds(address, size)) {
            const Outcome outcome = access_memory(hart, *memory, address - memory->base, size, kind, value, time);
            if (checks_.on()) [[unlikely]] {
                if (test_and_set)
                    checks_.add_flag(address & ~3u, 4);
                check(hart, op, where, *memory, address - memory->base, size, kind, time);
            }
            if (kind == AccessKind::store && address == to_host_ && to_host_ != 0) [[unlikely]]
                ask_host(hart, op, static_cast<uint32_t>(value), hart.group->machine_time(time));
            if (stopping_)
                return Outcome::fault;
            if (test_and_set)
                std::memset(memory->data + (address - memory->base), 0xff, size);
            return outcome;
        }
    for (size_t i = 0; i < ranges_.size(); ++i)
        if (address - ranges_[i].base < ranges_[i].size) {
            const Access request{hart,
                                 address - ranges_[i].base + ranges_[i].offset,
                                 size,
                                 kind == AccessKind::store,
                                 kind == AccessKind::event_load,
                                 static_cast<uint32_t>(value),
                                 hart.group->machine_time(time),
                                 hart.code->pc_of(op),
                                 where};
            return access_device(hart, op, ranges_[i], i, request, value, time);
        }
    return fail(hart, op, "bad-access",
                kind == AccessKind::store ? "store outside of all memories" : "load outside of all memories", address);
}

void Machine::check(Hart &hart, const Op *op, uint32_t where, Memory &memory, uint32_t offset, uint32_t size,
                    AccessKind kind, int64_t time) {
    const HartAccess access{hart,   *op,  hart.code->pc_of(op),          where, memory,
                            offset, size, hart.group->machine_time(time)};
    if (kind == AccessKind::store)
        checks_.check_store(access);
    else
        checks_.check_load(access);
}

void Machine::check_atomic(const Hart &hart, uint32_t address) {
    const Alias *alias = alias_of(hart, address);
    checks_.add_flag(alias != nullptr ? alias->shown(address) : address, 4);
}

void Machine::check_registers(Hart &hart, const Op *op) {
    if (op->code == op_undecoded)
        decode(*hart.group, *hart.code, op);
    checks_.check_registers(hart, *op);
}

Outcome Machine::access_memory(Hart &hart, Memory &memory, uint32_t offset, uint32_t size, AccessKind kind,
                               uint64_t &value, int64_t &time) {
    const HartGroup &group = *hart.group;
    const bool near = &memory == group.near;
    const int64_t cycles = group.memory_cycles[memory.index];
    // A word that crosses a bank is two accesses, as is a double where banks have words of four bytes.
    const bool wide = (1u << memory.bank_shift) >= 8 && offset % 8 == 0;
    const bool crosses = offset % 4 + std::min(size, 4u) > 4 || (size == 8 && !wide);
    if (!near)
        ++memory.far_accesses;
    for (uint32_t part = 0; part < (crosses ? 2u : 1u); ++part) {
        if (near && group.near_banks) {
            const uint32_t place = offset + 4 * part;
            const int64_t wait =
                group.pipeline.scoreboard ? memory.take_slot(place, time, time) - time : memory.take_bank(place, time);
            hart.counters.stall_bank += static_cast<uint64_t>(wait);
            time += wait;
        }
        // The instruction's own cycle is the last of the last part.
        if (part != 0 || !crosses) {
            time += cycles - 1;
            hart.counters.stall_memory += static_cast<uint64_t>(cycles - 1);
        } else {
            time += cycles;
            hart.counters.stall_misaligned += static_cast<uint64_t>(cycles);
        }
    }
    if (kind == AccessKind::store) {
        if (reservations_ != 0)
            break_reservations(hart, memory.base + offset, size);
        std::memcpy(memory.data + offset, &value, size);
    } else {
        value = 0;
        std::memcpy(&value, memory.data + offset, size);
    }
    return Outcome::done;
}

Outcome Machine::access_device(Hart &hart, const Op *op, const DeviceRange &range, size_t index, const Access &request,
                               uint64_t &value, int64_t &time) {
    if (hart.stores_unwritten) [[unlikely]]
        checks_.check_device_store(hart, *op);
    const Reply reply = range.device->access(request);
    if (reply.refused)
        return fail(hart, op, "bad-register", "'" + range.device->name() + "' has no such register",
                    range.base + request.offset - range.offset);
    if (checks_.on() && range.device->only_keeps(request.offset)) {
        if (request.write)
            checks_.release_flag(hart, request.address);
        else
            checks_.acquire_flag(hart, request.address);
    }
    if (stopping_) // the program has ended or failed here, and does nothing more
        return Outcome::fault;
    const int64_t wait = int64_t{hart.group->device_cycles[index]} - 1 + reply.wait;
    time += wait;
    hart.counters.stall_memory += static_cast<uint64_t>(wait);
    if (reply.asleep) {
        hart.state = HartState::asleep;
        hart.elw_register = request.write ? nowhere : op->rd;
        return Outcome::asleep;
    }
    if (request.event_load)
        hart.turn = ++turns_;
    value = reply.value;
    return Outcome::done;
}

void Machine::count_reservations(int change) {
    reservations_ += static_cast<uint32_t>(change);
    // Stores that may end a reservation take the slow way.
    for (const auto &group : groups_)
        group->view.size = reservations_ == 0 ? group->near->size : 0;
}

void Machine::reserve(Hart &hart, uint32_t address) {
    const Alias *alias = alias_of(hart, address);
    count_reservations(hart.reservation == no_reservation ? 1 : 0);
    hart.reservation = alias != nullptr ? alias->shown(address) : address;
}

bool Machine::release(Hart &hart, uint32_t address) {
    const Alias *alias = alias_of(hart, address);
    const bool held = hart.reservation == (alias != nullptr ? alias->shown(address) : address);
    count_reservations(hart.reservation == no_reservation ? 0 : -1);
    hart.reservation = no_reservation;
    return held;
}

void Machine::break_reservations(const Hart &by, uint32_t address, uint32_t size) {
    for (Hart &hart : harts_) {
        if (&hart == &by || hart.reservation == no_reservation)
            continue;
        if (hart.reservation < address + size && address < hart.reservation + 4) {
            hart.reservation = no_reservation;
            count_reservations(-1);
        }
    }
}

} // namespace tilewright
