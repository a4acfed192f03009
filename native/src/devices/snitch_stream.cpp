#include "devices/snitch_stream.h"

namespace tilewright {

namespace {

enum : uint32_t {
    register_status = 0,
    register_repeat = 1,
    register_bounds = 2,
    register_strides = 6,
    register_index_settings = 10,
    register_index_base = 11,
    register_indirect_read = 16,
    register_indirect_write = 20,
    register_read = 24,
    register_write = 28,
    registers = 32
};

} // namespace

uint32_t Stream::read(uint32_t number) const {
    if (number == register_status)
        return (active_ ? 0 : 1u << 31) | (job_.write ? 1u << 30 : 0) | (job_.dims - 1) << 28 |
               (job_.indirect ? 1u << 27 : 0) | (pointer_ & ((1u << 27) - 1));
    if (number == register_repeat)
        return registers_.repeat;
    if (number >= register_bounds && number < register_strides)
        return registers_.bounds[number - register_bounds];
    if (number >= register_strides && number < register_index_settings)
        return registers_.strides[number - register_strides];
    return number == register_index_settings ? registers_.index_settings
           : number == register_index_base   ? registers_.index_base
                                             : 0;
}

bool Stream::write(uint32_t number, uint32_t value, const Op *op, int64_t time) {
    if (number >= registers)
        return false;
    if (number >= register_indirect_read) {
        StreamJob job{registers_, value, number % 4 + 1, false, number < register_read, op};
        job.write = number >= register_write || (number >= register_indirect_write && number < register_read);
        if (!active_)
            return begin(job, time);
        behind_ = job;
        queued_ = true;
        return true;
    }
    if (number == register_repeat)
        registers_.repeat = value;
    else if (number >= register_bounds && number < register_strides)
        registers_.bounds[number - register_bounds] = value;
    else if (number >= register_strides && number < register_index_settings)
        registers_.strides[number - register_strides] = value;
    else if (number == register_index_settings)
        registers_.index_settings = value;
    else if (number == register_index_base)
        registers_.index_base = value;
    return true;
}

bool Stream::begin(const StreamJob &job, int64_t time) {
    job_ = job;
    const uint32_t pc = hart_.code->pc_of(job.op);
    constexpr uint32_t endless = 0x80000000;
    for (uint32_t d = 0; d < job.dims; ++d) {
        if (job.loops.bounds[d] >= endless)
            machine_.report(Check::stream,
                            "starts a stream that never ends: a bound is the count less 1, and this one is " +
                                std::to_string(static_cast<int32_t>(job.loops.bounds[d])),
                            hart_, pc, job.pointer);
        const bool indices = job.indirect && d == 0;
        if (!indices && job.loops.strides[d] % 8 != 0)
            machine_.report(Check::stream,
                            "starts a stream with a stride of " +
                                std::to_string(static_cast<int32_t>(job.loops.strides[d])) +
                                " bytes; streams move 8 bytes, and the hardware takes strides for multiples of 8",
                            hart_, pc, job.pointer);
    }
    if (!job.indirect && job.pointer % 8 != 0)
        machine_.report(Check::stream, "starts a stream at an address that is no multiple of 8", hart_, pc,
                        job.pointer);
    const uint32_t mask = ~(settings_.element_bytes - 1);
    for (uint32_t d = job_.indirect ? 1 : 0; d < StreamConfiguration::dimensions; ++d)
        job_.loops.strides[d] &= mask;
    if (!job_.indirect)
        job_.pointer &= mask;
    active_ = true;
    at_ = {};
    left_ = job_.loops.bounds[0];
    stride_ = job_.loops.strides[0];
    repeat_ = job_.loops.repeat;
    pointer_ = job_.pointer;
    index_word_ = 1;
    own_port_ = std::max(own_port_, time + settings_.start);
    fetch(time);
    return true;
}

void Stream::leave(const char *why, uint32_t address) {
    machine_.fail(hart_, job_.op, "bad-access", std::string("a stream ") + why, address);
    active_ = flows_ = false;
}

void Stream::leave_near(uint32_t address) {
    leave("reads outside of the memory next to the hart, the only one it reaches", address);
}

void Stream::next_row() {
    left_ = job_.loops.bounds[0];
    for (uint32_t d = 1; d < job_.dims; ++d) {
        if (at_[d] < job_.loops.bounds[d]) {
            ++at_[d];
            pointer_ += job_.loops.strides[d];
            return;
        }
        at_[d] = 0;
    }
    active_ = flows_ = false;
}

void Stream::fetch(int64_t now) {
    while (active_ && !job_.write && waiting_ < depth_) {
        uint32_t address = next_address();
        if (job_.indirect && !look_up(address, now))
            return;
        const uint32_t offset = address - base_;
        if (offset >= size_) {
            leave_near(address);
            return;
        }
        put_in(fifo_[(static_cast<uint32_t>(first_ - fifo_.data()) + waiting_++) % depth_], offset, now);
        if (machine_.checks().on())
            machine_.check(hart_, job_.op, address, *hart_.near->memory, offset, 8, AccessKind::load, now);
    }
    flows_ = active_ && !job_.write && !job_.indirect && !machine_.checks().on();
    if (!active_ && queued_ && (!behind_.write || waiting_ == 0)) {
        queued_ = false;
        begin(behind_, now);
    }
}

bool Stream::fetch_slowly(Element &place, int64_t now) {
    fetch_next(place, now);
    return flows_;
}

void Stream::leave_room(int64_t now) {
    --waiting_;
    if (active_ || queued_)
        fetch(now);
}

bool Stream::look_up(uint32_t &address, int64_t now) {
    const uint32_t size = 1u << (job_.loops.index_settings & 3);
    const uint32_t offset = address - base_;
    if (offset >= size_) {
        leave("reads indices outside of the memory next to the hart", address);
        return false;
    }
    if (address >> 3 != index_word_ >> 1 || index_word_ % 2 != 0) {
        request(offset, now, now);
        index_word_ = address >> 3 << 1;
    }
    uint32_t index = 0;
    std::memcpy(&index, data_ + offset, size);
    address = job_.loops.index_base + (index << ((job_.loops.index_settings >> 8 & 31) + 3));
    return true;
}

void Stream::put(uint64_t value, const Op *op, int64_t time) {
    const uint32_t address = next_address();
    const uint32_t offset = address - base_;
    if (offset >= size_) {
        machine_.fail(hart_, op, "bad-access",
                      "a stream writes outside of the memory next to the hart, the only one it reaches", address);
        return;
    }
    request(offset, machine_.now(), time);
    std::memcpy(data_ + offset, &value, sizeof value);
    if (machine_.checks().on())
        machine_.check(hart_, op, address, *hart_.near->memory, offset, 8, AccessKind::store, time);
    if (!active_ && queued_) {
        queued_ = false;
        begin(behind_, time);
    }
}

} // namespace tilewright
