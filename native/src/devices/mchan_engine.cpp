// What a MCHAN does cycle by cycle; see mchan.h.
#include "devices/mchan.h"

#include "machine/machine.h"

#include <algorithm>
#include <cstring>

namespace tilewright {

void Mchan::happen(uint32_t tag) {
    if (tag == generation_)
        step(machine_.now());
}

void Mchan::step(int64_t time) {
    if (words_at_ != never) {
        credit(time - 1);
        words_at_ = std::max(time, bank_conflicts_ ? words_at_ : time);
    }
    if (queue_at_ == time) {
        queue_at_ = never;
        move_command(time);
        look_ahead(time);
    }
    for (Direction *direction : {&in_, &out_})
        if (direction->burst_at == time) {
            direction->burst_at = never;
            start_burst(*direction, time);
            look_ahead(time);
        }
    if (words_at_ == time) {
        words_at_ = never;
        move_words(time);
        credited_ = time;
        look_ahead(time);
    }
    plan(time);
}

void Mchan::move_command(int64_t time) {
    if (!move_command(in_, true, time))
        move_command(out_, false, time);
}

bool Mchan::move_command(Direction &direction, bool inward, int64_t time) {
    if (direction.queue.size() >= queue_)
        return false;
    for (uint32_t i = 0; i < ports_.size(); ++i) {
        const auto hart = static_cast<uint32_t>((turn_ + i) % ports_.size());
        Port &port = ports_[hart];
        const auto command =
            std::ranges::find_if(port.queue, [inward](const Command &each) { return each.inward == inward; });
        if (command == port.queue.end())
            continue;
        direction.queue.push_back(*command);
        port.queue.erase(command);
        turn_ = static_cast<uint32_t>((hart + 1) % ports_.size());
        if (port.blocked) {
            const uint32_t word = *port.blocked;
            port.blocked.reset();
            Hart &blocked = machine_.harts()[hart];
            add_word(hart, word, machine_.pc_of(blocked), time);
            machine_.wake(blocked, time, 0);
        }
        return true;
    }
    return false;
}

void Mchan::start_burst(Direction &direction, int64_t time) {
    if (!direction.current && !direction.queue.empty()) {
        direction.current = direction.queue.front();
        direction.queue.pop_front();
        if (direction.busy_from == never)
            direction.busy_from = time;
    }
    const size_t room = &direction == &in_ ? outstanding_ : 1;
    if (!direction.current || direction.bursts.size() >= room)
        return;
    direction.bursts.push_back(next_burst(*direction.current, time));
    if (direction.bursts.back().last)
        direction.current.reset();
}

Mchan::Burst Mchan::next_burst(Command &command, int64_t time) const {
    uint32_t size = std::min(burst_, command.length - command.moved);
    for (const Lines &lines : {command.near_lines, command.far_lines})
        if (lines.length != 0)
            size = std::min(size, lines.length - command.moved % lines.length);
    Burst burst{command.near + command.near_lines.offset_of(command.moved),
                command.far + command.far_lines.offset_of(command.moved),
                size,
                0,
                time + (command.inward ? read_cycles_ : 0),
                command.moved + size == command.length,
                command.event,
                command.interrupt,
                command.counter,
                command.transfer};
    command.moved += size;
    return burst;
}

void Mchan::move_words(int64_t time) {
    for (uint32_t port = 0; port < port_free_.size(); ++port)
        if (port_free_[port] <= time)
            move_word(port < ports_per_direction ? in_ : out_, port, time);
}

void Mchan::move_word(Direction &direction, uint32_t port, int64_t time) {
    if (direction.bursts.empty() || direction.bursts.front().from > time)
        return;
    Burst &burst = direction.bursts.front();
    const uint32_t place = burst.near + burst.done;
    const int64_t wait = bank_conflicts_ ? near_.take_bank(place, time) : 0;
    port_free_[port] = time + wait + 1;
    burst.done += std::min(word_bytes - place % word_bytes, burst.size - burst.done);
    if (burst.done == burst.size)
        finish_burst(direction, time);
}

void Mchan::finish_burst(Direction &direction, int64_t time) {
    const Burst burst = direction.bursts.front();
    direction.bursts.pop_front();
    copy(burst, &direction == &in_);
    if (direction.bursts.empty() && direction.queue.empty() && !direction.current) {
        direction.busy += static_cast<uint64_t>(time - direction.busy_from + 1);
        direction.busy_from = never;
    }
    if (burst.last && burst.transfer != no_transfer)
        machine_.transfer_done(burst.transfer, time);
    pending_[burst.counter] -= burst.size;
    if (pending_[burst.counter] != 0)
        return;
    if (burst.event)
        events_.signal(event_line_, time);
    if (burst.interrupt)
        events_.signal(interrupt_line_, time);
}

void Mchan::copy(const Burst &burst, bool inward) {
    uint8_t *near = near_.data + burst.near;
    uint8_t *far = machine_.bytes(burst.far, burst.size).data();
    // A transfer may go to the near memory from itself.
    std::memmove(inward ? near : far, inward ? far : near, burst.size);
}

void Mchan::look_ahead(int64_t time) {
    const bool commands = std::ranges::any_of(ports_, [](const Port &port) { return !port.queue.empty(); });
    if (commands && queue_at_ == never)
        queue_at_ = time + 1;
    for (Direction *direction : {&in_, &out_}) {
        const size_t room = direction == &in_ ? outstanding_ : 1;
        const bool next = direction->current ? direction->bursts.size() < room : !direction->queue.empty();
        if (next && direction->burst_at == never)
            direction->burst_at = time + 1;
    }
    if ((!in_.bursts.empty() || !out_.bursts.empty()) && words_at_ == never) {
        words_at_ = std::max(time + 1, *std::ranges::min_element(port_free_));
        credited_ = words_at_ - 1;
    }
}

// Counts the words of cycles in which nothing else happened: every port with a burst moved one.
void Mchan::credit(int64_t until) {
    const int64_t cycles = until - credited_;
    if (cycles <= 0)
        return;
    for (Direction *direction : {&in_, &out_}) {
        if (direction->bursts.empty())
            continue;
        Burst &burst = direction->bursts.front();
        const int64_t from = std::max(credited_, burst.from - 1);
        if (until > from)
            burst.done += static_cast<uint32_t>(until - from) * ports_per_direction * word_bytes -
                          (burst.near + burst.done) % word_bytes;
    }
    credited_ = until;
}

// The cycle in which the first burst of a direction ends, or its first word moves if that is still to come.
int64_t Mchan::end_of_burst(const Direction &direction, int64_t from) const {
    if (direction.bursts.empty())
        return never;
    const Burst &burst = direction.bursts.front();
    if (burst.from > from)
        return burst.from;
    const uint32_t words =
        (burst.size - burst.done + (burst.near + burst.done) % word_bytes + word_bytes - 1) / word_bytes;
    return from + (words + ports_per_direction - 1) / ports_per_direction - 1;
}

void Mchan::plan(int64_t time) {
    int64_t next = std::min({queue_at_, in_.burst_at, out_.burst_at});
    if (words_at_ != never) {
        const bool every_cycle = bank_conflicts_ || next != never;
        next = std::min(next, every_cycle ? words_at_
                                          : std::min(end_of_burst(in_, words_at_), end_of_burst(out_, words_at_)));
    }
    if (next == never)
        return;
    machine_.schedule(std::max(next, time), *this, ++generation_);
}

} // namespace tilewright
