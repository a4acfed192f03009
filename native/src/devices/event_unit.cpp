#include "devices/event_unit.h"

#include "machine/machine.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tilewright {

namespace {

// Registers of a core.
enum : uint32_t {
    reg_mask = 0x00,
    reg_mask_and = 0x04,
    reg_mask_or = 0x08,
    reg_interrupt_mask = 0x0c,
    reg_interrupt_mask_and = 0x10,
    reg_interrupt_mask_or = 0x14,
    reg_status = 0x18,
    reg_buffer = 0x1c,
    reg_buffer_masked = 0x20,
    reg_buffer_interrupts = 0x24,
    reg_buffer_clear = 0x28,
    reg_software_targets = 0x2c,
    reg_software_targets_and = 0x30,
    reg_software_targets_or = 0x34,
    reg_wait = 0x38,
    reg_wait_clear = 0x3c,
};
// Registers of a barrier.
enum : uint32_t {
    reg_trigger_mask = 0x00,
    reg_barrier_status = 0x04,
    reg_barrier_summary = 0x08,
    reg_target_mask = 0x0c,
    reg_trigger = 0x10,
    reg_trigger_self = 0x14,
    reg_trigger_wait = 0x18,
    reg_trigger_wait_clear = 0x1c,
};
// Areas of what all see, and of what a core sees.
constexpr uint32_t core_bytes = 0x40, barrier_bytes = 0x20;
constexpr uint32_t all_cores = 0x000, all_barriers = 0x400, all_software = 0x600, all_end = 0x700;
constexpr uint32_t own_dispatch = 0x80, own_mutexes = 0xc0, own_software = 0x100, own_barriers = 0x200;
constexpr uint32_t software_events = 8;

// The register itself, or one that clears or sets bits of it.
void write_bits(uint32_t &bits, uint32_t how, uint32_t value) {
    bits = how == 0 ? value : how == 4 ? bits & ~value : bits | value;
}

} // namespace

EventUnit::EventUnit(Machine &machine, const std::string &name, const Settings &settings)
    : Device(machine, name), first_(settings.word("first_hart")), barrier_event_(1u << settings["barrier_event"]),
      mutex_event_(1u << settings["mutex_event"]), dispatch_event_(1u << settings["dispatch_event"]),
      dispatch_depth_(settings.word("dispatch_depth")), wake_cycles_(settings.either("wake_cycles", 0)),
      cores_(settings.word("harts")), barriers_(settings.word("barriers")), mutexes_(settings.word("mutexes")),
      waiting_register_(cores_.size(), 0) {
    if (first_ + cores_.size() > machine_.harts().size() || cores_.empty())
        throw std::invalid_argument(name + ": there are no such harts");
    machine_.harts()[first_].group->interrupts = this;
}

bool EventUnit::is_core(const Hart &hart) const { return hart.index - first_ < cores_.size(); }
Hart &EventUnit::hart_of(uint32_t core) { return machine_.harts()[first_ + core]; }

Reply EventUnit::access(const Access &access) {
    const uint32_t offset = access.offset;
    const uint32_t accessing = access.hart.index - first_;
    if (offset >= port)
        return is_core(access.hart) ? port_access(accessing, offset - port, access) : Reply{.refused = true};
    if (offset < all_barriers) {
        const uint32_t core = (offset - all_cores) / core_bytes;
        return core < cores_.size() ? core_register(core, offset % core_bytes, access, false) : Reply{.refused = true};
    }
    if (offset < all_software)
        return barrier_register((offset - all_barriers) / barrier_bytes, offset % barrier_bytes, access, false, 0);
    if (offset < all_end && offset % 0x100 < 4 * software_events && access.write) {
        ++software_events_;
        Clock told;
        machine_.checks().release(access.hart, told);
        trigger(access.value != 0 ? access.value : ~0u, 1u << (offset % 0x100 / 4), told, access.time);
        return {};
    }
    return {.refused = true};
}

Reply EventUnit::port_access(uint32_t core, uint32_t offset, const Access &access) {
    if (offset < core_bytes)
        return core_register(core, offset, access, true);
    if (offset == own_dispatch || offset == own_dispatch + 4)
        return dispatch(core, offset, access);
    if (offset >= own_mutexes && offset < own_mutexes + 4 * mutexes_.size())
        return mutex(core, (offset - own_mutexes) / 4, access);
    if (offset >= own_software && offset < own_barriers)
        return software_event(core, offset - own_software, access);
    if (offset >= own_barriers)
        return barrier_register((offset - own_barriers) / barrier_bytes, offset % barrier_bytes, access, true, core);
    return {.refused = true};
}

Reply EventUnit::core_register(uint32_t number, uint32_t offset, const Access &access, bool own) {
    Core &core = cores_[number];
    if (access.write) {
        if (offset <= reg_mask_or)
            write_bits(core.mask, offset - reg_mask, access.value);
        else if (offset <= reg_interrupt_mask_or)
            write_bits(core.interrupt_mask, offset - reg_interrupt_mask, access.value);
        else if (offset == reg_buffer_clear)
            core.buffer &= ~access.value;
        else if (offset >= reg_software_targets && offset <= reg_software_targets_or)
            write_bits(core.software_targets, offset - reg_software_targets, access.value);
        settle(number, access.time);
        return {};
    }
    const uint32_t events = core.buffer & core.mask;
    switch (offset) {
    case reg_interrupt_mask:
    case reg_interrupt_mask_and:
    case reg_interrupt_mask_or:
        return {.value = core.interrupt_mask};
    case reg_status: // whether the core's clock runs
        return {.value = hart_of(number).state == HartState::running};
    case reg_buffer:
        if (own)
            learn(number, core.buffer);
        return {.value = core.buffer};
    case reg_buffer_masked:
        if (own)
            learn(number, events);
        return {.value = events};
    case reg_buffer_interrupts:
        return {.value = core.buffer & core.interrupt_mask};
    case reg_software_targets:
    case reg_software_targets_and:
    case reg_software_targets_or:
        return {.value = core.software_targets};
    case reg_wait:
    case reg_wait_clear:
        waiting_register_[number] = access.offset;
        return own ? wait_for_event(number, offset == reg_wait_clear) : Reply{.value = events};
    default:
        return {.value = core.mask};
    }
}

Reply EventUnit::barrier_register(uint32_t number, uint32_t offset, const Access &access, bool own, uint32_t core) {
    if (number >= barriers_.size())
        return {.refused = true};
    Barrier &barrier = barriers_[number];
    if (access.write) {
        if (offset == reg_trigger_mask)
            barrier.trigger_mask = access.value;
        else if (offset == reg_target_mask)
            barrier.target_mask = access.value;
        else if (offset == reg_trigger)
            arrive(barrier, access.value, access);
        else if (offset == reg_trigger_self && own)
            arrive(barrier, 1u << core, access);
        return {};
    }
    if (offset == reg_barrier_summary) {
        uint32_t reached = 0;
        for (const Barrier &each : barriers_)
            reached |= each.status;
        return {.value = reached};
    }
    if (offset == reg_barrier_status)
        machine_.checks().acquire(access.hart, barrier.arrived);
    if (!own || offset < reg_trigger_self)
        return {.value = offset == reg_trigger_mask  ? barrier.trigger_mask
                         : offset == reg_target_mask ? barrier.target_mask
                                                     : barrier.status};
    const bool replayed = cores_[core].replayed == access.offset;
    if (!replayed)
        arrive(barrier, 1u << core, access);
    if (offset == reg_trigger_self)
        return {.value = barrier.status};
    waiting_register_[core] = access.offset;
    return wait_for_event(core, offset == reg_trigger_wait_clear);
}

void EventUnit::arrive(Barrier &barrier, uint32_t cores, const Access &access) {
    machine_.checks().release(access.hart, barrier.arrived);
    barrier.status |= cores;
    if (barrier.trigger_mask == 0 || (barrier.status & barrier.trigger_mask) != barrier.trigger_mask)
        return;
    barrier.status = 0;
    ++barriers_passed_;
    trigger(barrier.target_mask, barrier_event_, std::exchange(barrier.arrived, {}), access.time);
}

Reply EventUnit::software_event(uint32_t core, uint32_t offset, const Access &access) {
    const uint32_t number = offset % core_bytes / 4, variant = offset / core_bytes;
    if (number >= software_events || variant > 2)
        return {.refused = true};
    if (cores_[core].replayed != access.offset) {
        // A write names the cores; a read goes to those set before. None means all.
        const uint32_t named = access.write ? access.value : cores_[core].software_targets;
        ++software_events_;
        Clock told;
        machine_.checks().release(access.hart, told);
        trigger(named != 0 ? named : ~0u, 1u << number, told, access.time);
    }
    if (access.write || variant == 0)
        return {};
    waiting_register_[core] = access.offset;
    return wait_for_event(core, variant == 2);
}

Reply EventUnit::mutex(uint32_t core, uint32_t number, const Access &access) {
    Mutex &mutex = mutexes_[number];
    if (!access.write) {
        if (!mutex.locked) {
            mutex.locked = true;
            machine_.checks().acquire(access.hart, mutex.left);
            return {.value = mutex.message};
        }
        ++mutex_waits_;
        mutex.waiting.push_back(core);
        waiting_register_[core] = access.offset;
        return sleep(core, Wait::mutex);
    }
    mutex.message = access.value;
    machine_.checks().release(access.hart, mutex.left);
    if (mutex.waiting.empty()) {
        mutex.locked = false;
        return {};
    }
    const uint32_t next = mutex.waiting.front();
    mutex.waiting.pop_front();
    cores_[next].message = access.value;
    cores_[next].given = mutex.left;
    trigger(1u << next, mutex_event_, {}, access.time);
    return {};
}

Reply EventUnit::dispatch(uint32_t core, uint32_t offset, const Access &access) {
    if (offset != own_dispatch) {
        if (access.write)
            team_ = access.value;
        return {.value = team_};
    }
    if (access.write) {
        ++dispatches_;
        if (dispatched_.size() < dispatch_depth_) {
            push_dispatch(core, access.value, access.time);
            return {};
        }
        blocked_.push_back({core, access.value});
        return {.asleep = true};
    }
    uint32_t value = 0;
    if (take_dispatch(core, value, access.time))
        return {.value = value};
    waiting_register_[core] = access.offset;
    return sleep(core, Wait::dispatch);
}

void EventUnit::push_dispatch(uint32_t core, uint32_t value, int64_t time) {
    // Who pushes runs the function without reading it back.
    Dispatched entry{value, team_ & ~(1u << core), {}};
    machine_.checks().release(hart_of(core), entry.pushed);
    uint32_t woken = 0;
    for (uint32_t i = 0; i < cores_.size(); ++i)
        if (cores_[i].wait == Wait::dispatch && ((entry.readers >> i) & 1) != 0 &&
            (cores_[i].buffer & dispatch_event_) == 0) {
            cores_[i].message = value;
            cores_[i].given = entry.pushed;
            woken |= 1u << i;
        }
    entry.readers &= ~woken;
    if (entry.readers != 0)
        dispatched_.push_back(entry);
    trigger(woken, dispatch_event_, {}, time);
}

bool EventUnit::take_dispatch(uint32_t core, uint32_t &value, int64_t time) {
    const auto entry =
        std::ranges::find_if(dispatched_, [core](const Dispatched &each) { return ((each.readers >> core) & 1) != 0; });
    if (entry == dispatched_.end())
        return false;
    value = entry->value;
    machine_.checks().acquire(hart_of(core), entry->pushed);
    entry->readers &= ~(1u << core);
    while (!dispatched_.empty() && dispatched_.front().readers == 0)
        dispatched_.pop_front();
    while (!blocked_.empty() && dispatched_.size() < dispatch_depth_) {
        const BlockedPush push = blocked_.front();
        blocked_.pop_front();
        push_dispatch(push.core, push.value, time);
        machine_.wake(hart_of(push.core), time, 0);
    }
    return true;
}

Reply EventUnit::wait_for_event(uint32_t number, bool clears) {
    Core &core = cores_[number];
    ++waits_;
    core.replayed = 0;
    const uint32_t events = core.buffer & core.mask;
    if (events == 0) {
        core.clears = clears;
        return sleep(number, Wait::event);
    }
    learn(number, events);
    if (clears)
        core.buffer &= ~core.mask;
    return {.value = events};
}

Reply EventUnit::sleep(uint32_t core, Wait wait) {
    ++sleeps_;
    cores_[core].wait = wait;
    return {.asleep = true};
}

void EventUnit::signal(uint32_t line, int64_t time) { trigger(~0u, 1u << line, {}, time); }

void EventUnit::trigger(uint32_t cores, uint32_t events, const Clock &told, int64_t time) {
    const auto line = static_cast<size_t>(std::countr_zero(events));
    for (uint32_t i = 0; i < cores_.size(); ++i)
        if ((cores >> i) & 1) {
            // An event that is still there says nothing new of transfers.
            if ((cores_[i].buffer & events) == 0) {
                cores_[i].ends[line] = machine_.checks().ends();
                cores_[i].told[line].clear();
            }
            join(cores_[i].told[line], told);
            cores_[i].buffer |= events;
            settle(i, time);
        }
}

void EventUnit::learn(uint32_t number, uint32_t events) {
    if (!machine_.checks().on())
        return;
    for (; events != 0; events &= events - 1) {
        const auto line = static_cast<size_t>(std::countr_zero(events));
        machine_.checks().acquire(hart_of(number), cores_[number].told[line]);
        machine_.checks().event_seen(hart_of(number), {1u << line, cores_[number].ends[line]});
    }
}

void EventUnit::settle(uint32_t number, int64_t time) {
    Core &core = cores_[number];
    const uint32_t wanted = core.wait == Wait::event      ? core.mask
                            : core.wait == Wait::mutex    ? core.mask & mutex_event_
                            : core.wait == Wait::dispatch ? core.mask & dispatch_event_
                                                          : 0;
    if (const uint32_t events = core.buffer & wanted; events != 0) {
        const bool by_event = core.wait == Wait::event;
        core.buffer &= ~(!by_event ? wanted : core.clears ? core.mask : 0);
        core.wait = Wait::none;
        learn(number, events);
        if (!by_event)
            machine_.checks().acquire(hart_of(number), std::exchange(core.given, {}));
        machine_.wake(hart_of(number), time + wake_cycles_, by_event ? events : core.message);
    }
    const uint32_t lines = core.buffer & core.interrupt_mask;
    if (lines != hart_of(number).interrupt && machine_.set_interrupts(hart_of(number), lines, time))
        break_off(number);
}

// The hart executes the event load again after its interrupt; what that triggered must not be triggered twice.
void EventUnit::break_off(uint32_t number) {
    Core &core = cores_[number];
    if (core.wait == Wait::event)
        core.replayed = waiting_register_[number];
    for (Mutex &mutex : mutexes_)
        std::erase(mutex.waiting, number);
    core.wait = Wait::none;
}

void EventUnit::acknowledge(Hart &hart, uint32_t line) {
    if (!is_core(hart))
        return;
    Core &core = cores_[hart.index - first_];
    learn(hart.index - first_, core.buffer & 1u << line);
    core.buffer &= ~(1u << line);
    hart.interrupt = core.buffer & core.interrupt_mask;
}

std::map<std::string, uint64_t> EventUnit::statistics() const {
    return {{"barriers", barriers_passed_},
            {"waits", waits_},
            {"sleeps", sleeps_},
            {"software_events", software_events_},
            {"mutex_waits", mutex_waits_},
            {"dispatches", dispatches_}};
}

} // namespace tilewright
