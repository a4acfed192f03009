#include "devices/mchan.h"

#include "machine/machine.h"

#include <algorithm>
#include <cstdio>

namespace tilewright {

namespace {

constexpr uint32_t reg_command = 0, reg_status = 4;

// Words of a command.
constexpr uint32_t length_mask = 0x1ffff;
enum : uint32_t { bit_inward = 17, bit_far_lines = 19, bit_event = 20, bit_interrupt = 21, bit_near_lines = 23 };
bool bit(uint32_t word, uint32_t number) { return ((word >> number) & 1) != 0; }

size_t words_of(uint32_t first) {
    return 3 + (bit(first, bit_far_lines) ? 2u : 0u) + (bit(first, bit_near_lines) ? 2u : 0u);
}

} // namespace

Mchan::Mchan(Machine &machine, const std::string &name, const Settings &settings)
    : Device(machine, name), near_(machine.needed_memory(settings.text("memory"))),
      address_mask_(static_cast<uint32_t>((int64_t{1} << settings["address_bits"]) - 1)),
      events_(machine.needed_device(settings.text("events"))), event_line_(settings.word("event")),
      interrupt_line_(settings.word("interrupt_event")), core_queue_(settings.word("core_queue")),
      queue_(settings.word("queue")), burst_(settings.word("burst")), outstanding_(settings.word("outstanding")),
      bank_conflicts_(settings["bank_conflicts"] != 0), read_cycles_(settings.either("read_cycles", 0)),
      near_lines_(settings.either("near_lines", 1) != 0), ports_(machine.harts().size()),
      pending_(settings.word("counters"), 0), free_(static_cast<uint32_t>((uint64_t{1} << pending_.size()) - 1)) {
    for (size_t i = 0; i < pending_.size(); ++i)
        threads_.push_back(machine.checks().add_thread(
            name, "to free counter " + std::to_string(i) + " of '" + name + "' once its status shows the end", false));
}

Reply Mchan::access(const Access &access) {
    if (access.offset == reg_command)
        return access.write ? write_word(access) : allocate(access);
    if (access.offset != reg_status)
        return {.refused = true};
    if (!access.write)
        return {.value = status(access.hart)};
    release(access.value, access);
    return {};
}

Reply Mchan::allocate(const Access &access) {
    if (free_ == 0) {
        waiting_.push_back(access.hart.index);
        return {.asleep = true};
    }
    const auto counter = static_cast<uint32_t>(std::countr_zero(free_));
    free_ &= ~(1u << counter);
    ports_[access.hart.index].counter = counter;
    return {.value = counter};
}

uint32_t Mchan::status(const Hart &hart) {
    uint32_t busy = 0;
    for (uint32_t i = 0; i < pending_.size(); ++i) {
        if (pending_[i] != 0) {
            busy |= 1u << i;
            continue;
        }
        machine_.checks().end_shown(hart, threads_[i]);
    }
    const auto all = static_cast<uint32_t>((uint64_t{1} << pending_.size()) - 1);
    return busy | (all & ~free_) << 16;
}

void Mchan::release(uint32_t counters, const Access &access) {
    const auto all = static_cast<uint32_t>((uint64_t{1} << pending_.size()) - 1);
    if (const uint32_t twice = counters & all & free_; twice != 0)
        machine_.report(Check::double_free,
                        "DMA counter " + std::to_string(std::countr_zero(twice)) + " is freed, but it was not in use",
                        access.hart, access.pc, access.address);
    for (uint32_t i = 0; i < pending_.size(); ++i)
        if (((counters >> i) & 1) != 0)
            machine_.checks().given_back(access.hart, threads_[i]);
    free_ |= counters & all;
    while (!waiting_.empty() && free_ != 0) {
        Hart &hart = machine_.harts()[waiting_.front()];
        waiting_.pop_front();
        const auto counter = static_cast<uint32_t>(std::countr_zero(free_));
        free_ &= ~(1u << counter);
        ports_[hart.index].counter = counter;
        machine_.wake(hart, access.time, counter);
    }
}

Reply Mchan::write_word(const Access &access) {
    Port &port = ports_[access.hart.index];
    if (port.queue.size() >= core_queue_) {
        port.blocked = access.value;
        return {.asleep = true};
    }
    add_word(access.hart.index, access.value, access.pc, access.time);
    return {};
}

void Mchan::add_word(uint32_t hart, uint32_t word, uint32_t pc, int64_t time) {
    Port &port = ports_[hart];
    std::vector<uint32_t> &words = port.words;
    words.push_back(word);
    // Where only time counts, such a program may go on as it would on the chip.
    if (!near_lines_ && machine_.checks().on() && bit(words[0], bit_near_lines)) {
        machine_.stop_with(
            Fault{"unknown-command",
                  "this DMA has no lines on the side of " + near_.name + " (bit 23 of a command, words 6 and 7)", hart,
                  pc, words[0], time});
        return;
    }
    if (words.size() < words_of(words[0]))
        return;
    Command command;
    command.length = words[0] & length_mask;
    command.inward = bit(words[0], bit_inward);
    command.event = bit(words[0], bit_event);
    command.interrupt = bit(words[0], bit_interrupt);
    command.near = words[1] & address_mask_;
    command.far = words[2];
    size_t next = 3;
    if (bit(words[0], bit_far_lines)) {
        command.far_lines = {words[next], words[next + 1]};
        next += 2;
    }
    if (bit(words[0], bit_near_lines))
        command.near_lines = {words[next], words[next + 1]};
    command.counter = port.counter;
    words.clear();
    if (command.length == 0 || !describe(command, hart, pc, time))
        return;
    pending_[command.counter] += command.length;
    port.queue.push_back(command);
    look_ahead(time);
    plan(time);
}

// Checks where the command goes, and tells of it.
bool Mchan::describe(Command &command, uint32_t hart, uint32_t pc, int64_t time) {
    const auto each_line = [&command](const Lines &lines, uint32_t first) {
        std::vector<Range> ranges;
        const uint32_t length = lines.length == 0 ? command.length : lines.length;
        for (uint32_t byte = 0; byte < command.length; byte += length) {
            const uint32_t begin = first + lines.offset_of(byte);
            const uint32_t end = begin + std::min(length, command.length - byte);
            if (!ranges.empty() && ranges.back().end == begin)
                ranges.back().end = end;
            else
                ranges.push_back({begin, end});
        }
        return ranges;
    };
    std::vector<Range> near = each_line(command.near_lines, near_.base + command.near);
    std::vector<Range> far = each_line(command.far_lines, command.far);
    for (const auto *ranges : {&near, &far})
        for (const Range &range : *ranges)
            if (const auto bytes = machine_.bytes(range.begin, range.end - range.begin);
                bytes.empty() || (ranges == &near && !near_.holds(range.begin, range.end - range.begin))) {
                machine_.stop_with(
                    Fault{"bad-access", "a DMA transfer goes outside of all memories", hart, pc, range.begin, time});
                return false;
            }
    Direction &direction = command.inward ? in_ : out_;
    ++direction.transfers;
    direction.bytes += command.length;
    if (!machine_.wants_transfers())
        return true;
    char what[96];
    snprintf(what, sizeof what, "DMA %u bytes, 0x%08x -> 0x%08x", command.length,
             command.inward ? command.far : near_.base + command.near,
             command.inward ? near_.base + command.near : command.far);
    const bool aligned = command.near % word_bytes == 0 && command.far % word_bytes == 0;
    Transfer transfer{.what = what,
                      .lane = name() + (command.inward ? " in" : " out"),
                      .thread = threads_[command.counter],
                      .hart = hart,
                      .pc = pc,
                      .started = time,
                      .bytes = command.length,
                      .reads = command.inward ? far : near,
                      .writes = command.inward ? near : far,
                      // The event of a counter tells of all its transfers, also of those that did not ask for it.
                      .events = 1u << event_line_ | 1u << interrupt_line_};
    command.transfer = machine_.transfer_started(std::move(transfer));
    if (!aligned)
        machine_.report(Check::unaligned_transfer, "a DMA transfer does not start at a multiple of 4 bytes",
                        machine_.harts()[hart], pc, command.near % word_bytes != 0 ? near[0].begin : far[0].begin,
                        command.transfer);
    return true;
}

std::map<std::string, uint64_t> Mchan::statistics() const {
    return {{"transfers", in_.transfers + out_.transfers},
            {"bytes_in", in_.bytes},
            {"bytes_out", out_.bytes},
            {"busy_in", in_.busy},
            {"busy_out", out_.busy}};
}

} // namespace tilewright
