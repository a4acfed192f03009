#include "machine/machine.h"
#include "isa/float_lanes.h"

#include <algorithm>

namespace tilewright {

namespace {

uint32_t misa_of(const std::vector<std::string> &extensions) {
    constexpr uint32_t width_32 = 1u << 30;
    const auto bit = [](char letter) { return 1u << (letter - 'a'); };
    uint32_t misa = width_32;
    for (const std::string &extension : extensions)
        if (extension == "xfloat")
            misa |= bit('f') | bit('d') | bit('x');
        else if (extension.starts_with("x"))
            misa |= bit('x');
        else if (extension.starts_with("rv32"))
            misa |= bit(extension.back());
    return misa;
}

} // namespace

void Machine::add_memory(const std::string &name, uint32_t base, uint32_t size, uint32_t banks, bool executable,
                         uint32_t bank_bytes) {
    auto memory = std::make_unique<Memory>();
    memory->name = name;
    memory->index = static_cast<uint32_t>(memories_.size());
    memory->base = base;
    memory->size = size;
    memory->pages = Pages(size);
    memory->data = memory->pages.data();
    const auto shadow = [&memory](size_t bytes) { return memory->shadow_pages.emplace_back(bytes).data(); };
    memory->shadow = shadow(size);
    for (uint32_t **epochs : {&memory->reads, &memory->writes})
        *epochs = reinterpret_cast<uint32_t *>(shadow(size_t{size} * sizeof(uint32_t)));
    for (uint32_t **places : {&memory->read_places, &memory->write_places})
        *places = reinterpret_cast<uint32_t *>(shadow(size_t{size} + sizeof(uint32_t)));
    memory->bank_mask = std::bit_ceil(std::max(banks, 1u)) - 1;
    memory->bank_shift = static_cast<uint32_t>(std::countr_zero(bank_bytes));
    memory->bank_slots.assign(memory->bank_mask + size_t{1}, BankSlots{});
    memory->bank_free.assign(memory->bank_mask + size_t{1}, 0);
    memory->executable = executable;
    memories_.push_back(std::move(memory));
}

void Machine::add_outer_memory(const std::string &name, uint32_t size, uint8_t fill) {
    auto memory = std::make_unique<Memory>();
    memory->name = name;
    memory->size = size;
    memory->pages = Pages(size);
    memory->data = memory->pages.data();
    if (fill != 0)
        std::memset(memory->data, fill, size);
    outer_memories_.push_back(std::move(memory));
}

void Machine::add_alias(const std::string &memory_name, uint32_t base, uint32_t size, bool test_and_set,
                        const std::string &group) {
    Alias alias{base, size, memory(memory_name), test_and_set, -1};
    if (alias.memory == nullptr)
        throw std::invalid_argument("an alias shows memory '" + memory_name + "', which does not exist");
    for (size_t i = 0; i < groups_.size(); ++i)
        if (groups_[i]->name == group)
            alias.group = static_cast<int32_t>(i);
    aliases_.push_back(alias);
}

void Machine::add_harts(const GroupDescription &description) {
    auto group = std::make_unique<HartGroup>();
    group->name = description.name;
    group->first = static_cast<uint32_t>(harts_.size());
    group->count = description.count;
    group->pipeline = description.pipeline;
    group->divide = description.divide;
    group->decoder = std::make_unique<Decoder>(description.extensions, description.pipeline);
    group->has_float = std::ranges::any_of(description.extensions, [](const std::string &extension) {
        return extension == "rv32f" || extension == "zfinx" || extension == "xfloat";
    });
    group->misa = misa_of(description.extensions);
    group->near = memory(description.near);
    if (group->near == nullptr)
        throw std::invalid_argument("harts '" + description.name + "' are next to memory '" + description.near +
                                    "', which does not exist");
    group->near_banks = description.near_banks;
    group->outstanding_loads = std::min(description.outstanding_loads, Hart::most_loads);
    group->line_shift = static_cast<uint32_t>(std::countr_zero(description.fetch.line_bytes / 2));
    scoreboard_ |= description.pipeline.scoreboard;
    group->view = NearView{group->near->base,
                           group->near->size,
                           group->near->data,
                           group->near,
                           group->near->reads,
                           group->near->writes,
                           group->near_banks ? group->near->bank_free.data() : nullptr,
                           group->near->bank_mask,
                           group->near->bank_shift,
                           group->near_banks ? group->near->bank_slots.data() : nullptr,
                           nullptr};
    if (description.tiles) {
        group->tiles = std::make_unique<Tiles>(*description.tiles, group->first);
        group->view.tiles = group->tiles.get();
    }
    group->early_counters = description.early_counters;
    group->clock_numerator = description.clock_numerator;
    group->clock_denominator = description.clock_denominator;
    group->cycles = description.cycles;
    uint32_t lines = 0;
    for (const auto &memory : memories_) {
        group->memory_cycles.push_back(group->cycles_to(memory->name));
        if (!memory->executable)
            continue;
        Code code;
        code.base = memory->base;
        code.size = memory->size;
        code.memory = memory.get();
        code.first_line = lines;
        // One more, so that an instruction at the very end has one behind it.
        code_pages_.emplace_back(size_t{2} * (memory->size / 2 + 1) * sizeof(Op));
        code.ops = reinterpret_cast<Op *>(code_pages_.back().data());
        // Numbers keep the low bits of addresses, which choose the set of a cache.
        constexpr uint32_t alignment = 4096;
        lines += (memory->size / (2u << group->line_shift) / alignment + 1) * alignment;
        group->code.push_back(std::move(code));
    }
    group->caches = std::make_unique<FetchCaches>(description.fetch, description.count);
    constexpr uint32_t word_bits = 64;
    group->fetched_words = (description.count + word_bits - 1) / word_bits;
    // One line more, as an instruction at the very end is also looked for in the one behind.
    group->fetched = Pages((size_t{lines} + 1) * group->fetched_words * sizeof(uint64_t));
    for (uint32_t i = 0; i < description.count; ++i) {
        Hart hart;
        hart.index = group->first + i;
        hart.id = description.first_id + i;
        hart.group = group.get();
        hart.near = &group->view;
        hart.fetched = reinterpret_cast<uint64_t *>(group->fetched.data()) + i / word_bits;
        hart.fetched_bit = uint64_t{1} << (i % word_bits);
        harts_.push_back(std::move(hart));
    }
    groups_.push_back(std::move(group));
}

void Machine::add_units(const std::string &group, const std::vector<std::string> &instructions, uint32_t count,
                        int64_t cycles, bool round_robin) {
    const auto owner = std::ranges::find(groups_, group, [](const auto &each) { return each->name; });
    if (owner == groups_.end() || count == 0)
        throw std::invalid_argument("harts '" + group + "' have no units: there are none of either");
    HartGroup &harts = **owner;
    const size_t first = harts.units.size();
    harts.units.resize(first + count, SharedUnit{cycles, round_robin});
    for (const std::string &name : instructions) {
        const auto found = std::ranges::find(timing_names, name, [](const char *each) { return std::string(each); });
        const auto timing = static_cast<size_t>(found - timing_names.begin());
        if (found == timing_names.end() || !can_share_unit(static_cast<Timing>(timing), harts.pipeline.scoreboard))
            throw std::invalid_argument("instructions '" + name + "' have no unit that harts can share");
        // A hart that has one for itself never waits, so it need not look.
        for (uint32_t i = 0; i < harts.count && count < harts.count; ++i)
            harts_[harts.first + i].units[timing] = &harts.units[first + i % count];
    }
}

void Machine::add_window(const std::string &name, const std::string &device, uint32_t base, uint32_t size,
                         uint32_t offset) {
    ranges_.push_back(DeviceRange{base, size, &needed_device(device), offset});
    for (const auto &group : groups_)
        group->device_cycles.push_back(group->cycles_to(name));
}

Device *Machine::device(const std::string &name) {
    for (const auto &device : devices_)
        if (device->name() == name)
            return device.get();
    return nullptr;
}

Memory *Machine::memory(const std::string &name) {
    for (const auto &memory : memories_)
        if (memory->name == name)
            return memory.get();
    for (const auto &memory : outer_memories_)
        if (memory->name == name)
            return memory.get();
    return nullptr;
}

Device &Machine::needed_device(const std::string &name) {
    if (Device *found = device(name))
        return *found;
    throw std::invalid_argument("there is no device '" + name + "' (it must come before those that name it)");
}

Memory &Machine::needed_memory(const std::string &name) {
    if (Memory *found = memory(name))
        return *found;
    throw std::invalid_argument("there is no memory '" + name + "'");
}

Tiles &Machine::tiles_of(const Memory &memory) {
    for (const auto &group : groups_)
        if (group->tiles != nullptr && group->near == &memory)
            return *group->tiles;
    throw std::invalid_argument("memory '" + memory.name + "' is not next to harts in tiles");
}

int64_t HartGroup::scaled(int64_t time, int64_t numerator, int64_t denominator) {
    return time / denominator * numerator + time % denominator * numerator / denominator;
}

void Machine::start(uint32_t index, uint32_t pc, int64_t time) {
    Hart &hart = harts_.at(index);
    const Op *op = instruction_at(hart, pc);
    if (op == nullptr) {
        fail(hart, nullptr, "bad-jump", "a hart starts at an address without memory for instructions", pc);
        return;
    }
    hart.op = op;
    hart.state = HartState::running;
    if (hart.group->tiles == nullptr) // many harts go on in the order in which they come
        hart.turn = ++turns_;
    hart.time = std::max(hart.time, hart.group->own_time(time));
    hart.started = hart.time;
    trace(hart, TraceKind::start, pc, hart.time);
    schedule_.push(hart, hart.group->machine_time(hart.time));
}

void Machine::wake(Hart &hart, int64_t time, uint32_t value) {
    hart.state = HartState::running;
    hart.turn = ++turns_;
    hart.x[hart.elw_register] = value;
    hart.elw_register = nowhere;
    const int64_t woken = std::max(hart.group->own_time(time), hart.time);
    hart.counters.asleep += static_cast<uint64_t>(woken - hart.time);
    hart.time = woken + hart.op->cycles;
    trace(hart, TraceKind::awake, hart.code->pc_of(hart.op), woken);
    observe(hart, hart.op, nullptr, hart.time, hart.op->cycles);
    ++hart.counters.instructions;
    go_on(hart);
    schedule_.push(hart, hart.group->machine_time(hart.time));
}

void Machine::resume(Hart &hart, int64_t time) {
    hart.state = HartState::running;
    const int64_t woken = std::max(hart.group->own_time(time), hart.time);
    hart.counters.stall_unit += static_cast<uint64_t>(woken - hart.time);
    hart.time = woken;
    schedule_.push(hart, hart.group->machine_time(hart.time));
}

void Machine::pulse(Hart &hart, int64_t time) {
    constexpr uint32_t most_pulses = 7;
    if (hart.state != HartState::asleep || hart.op->code != op_wfi) {
        hart.pulses = std::min(hart.pulses + 1, most_pulses);
        return;
    }
    const int64_t woken = std::max(hart.group->own_time(time), hart.time);
    hart.counters.asleep += static_cast<uint64_t>(woken - hart.time);
    hart.time = woken + hart.op->cycles;
    trace(hart, TraceKind::awake, hart.code->pc_of(hart.op), woken);
    hart.state = HartState::running;
    ++hart.counters.instructions;
    go_on(hart);
    schedule_.push(hart, hart.group->machine_time(hart.time));
}

bool Machine::set_interrupts(Hart &hart, uint32_t lines, int64_t time) {
    hart.interrupt = lines;
    if (hart.state != HartState::asleep || (lines & hart.mie) == 0)
        return false;
    // Without the global enable, an interrupt ends the wait for one, but no event load.
    const bool waits_for_interrupt = hart.op->code == op_wfi;
    if (!waits_for_interrupt && (hart.op->code != op_p_elw || (hart.mstatus & mstatus_mie) == 0))
        return false;
    const int64_t woken = std::max(hart.group->own_time(time), hart.time);
    hart.counters.asleep += static_cast<uint64_t>(woken - hart.time);
    hart.time = woken + 1;
    trace(hart, TraceKind::awake, hart.code->pc_of(hart.op), woken);
    hart.state = HartState::running;
    hart.turn = ++turns_;
    if (waits_for_interrupt) {
        ++hart.counters.instructions;
        go_on(hart);
    }
    schedule_.push(hart, hart.group->machine_time(hart.time));
    return !waits_for_interrupt;
}

Stop Machine::run_kind(bool observed, int64_t until) {
    const UsualFloats usual;
    if (scoreboard_)
        return observed ? run_harts<true, true>(until) : run_harts<false, true>(until);
    return observed ? run_harts<true, false>(until) : run_harts<false, false>(until);
}

Stop Machine::run(int64_t until) {
    stopped_hart_ = nobody;
    const Stop stop = run_kind(observed_, until);
    return stop == Stop::cycle_limit && stopped_hart_ != nobody ? Stop::breakpoint : stop;
}

Stop Machine::step(uint32_t hart) {
    stepping_ = hart;
    const Stop stop = run_kind(true, never);
    stepping_ = nobody;
    return stop;
}

void Machine::exit(uint32_t code, const Hart &hart, uint32_t pc, int64_t time) {
    checks_.end_of_program(hart, pc, time);
    ended_ = time;
    exited_ = true;
    stopping_ = true;
    exit_code_ = code;
}

void Machine::stop_with(Fault fault) {
    if (!fault_)
        fault_ = std::move(fault);
    stopping_ = true;
}

std::string Machine::take_output() { return std::exchange(output_, {}); }

std::span<uint8_t> Machine::bytes(uint32_t address, uint32_t size) {
    for (const auto &memory : memories_)
        if (memory->holds(address, size))
            return {memory->data + (address - memory->base), size};
    return {};
}

void Machine::happen(const Event &event) { event.device->happen(event.tag); }

void Machine::forget_code() {
    for (const Pages &pages : code_pages_)
        pages.clear();
    for (const auto &group : groups_) {
        group->caches->clear();
        group->fetched.clear();
    }
    for (Hart &hart : harts_)
        for (HardwareLoop &loop : hart.loops)
            if (loop.behind != nullptr)
                move_loop(hart, loop, loop.start, loop.end);
}

int64_t Machine::fetch_line(Hart &hart, const Op *op, int64_t time) {
    FetchCaches &caches = *hart.group->caches;
    int64_t wait = 0;
    const uint32_t first = line_of(hart, op), last = line_of(hart, op + 1);
    for (uint32_t line = first; line <= last; ++line) {
        if ((fetched_word(hart, line) & hart.fetched_bit) != 0)
            continue;
        const FetchCaches::Refill refill = caches.refill(hart.index - hart.group->first, line, time);
        if (refill.kept)
            fetched_word(hart, line) |= hart.fetched_bit;
        for (const uint32_t gone : refill.gone)
            if (gone != CacheLines::empty)
                fetched_word(hart, gone) &= ~hart.fetched_bit;
        hart.counters.fetch_misses += refill.missed;
        wait += refill.cycles;
    }
    return wait;
}

void Machine::enable_caches(uint32_t group, bool enabled) { groups_.at(group)->caches->enable(enabled); }

} // namespace tilewright
