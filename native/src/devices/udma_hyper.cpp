#include "devices/udma_hyper.h"

#include "machine/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tilewright {

namespace {

// Registers of an id, and those of all, as words.
enum : uint32_t {
    rx_address,
    rx_size,
    rx_config,
    tx_address,
    tx_size,
    tx_config,
    command_setup,
    outer_address,
    outer_config,
    status_register,
    outer_rows_on,
    outer_row,
    outer_stride,
    rows_on,
    row_bytes,
    row_stride,
};
enum : uint32_t { common_latency = 1, common_double_latency = 2 };
constexpr uint32_t config_enable = 1u << 4;
constexpr uint32_t channel_bytes = 0x80;

uint32_t place(uint32_t first, uint32_t row, uint32_t stride, uint32_t byte) {
    return first + (row == 0 ? byte : byte / row * stride + byte % row);
}

} // namespace

UdmaHyper::UdmaHyper(Machine &machine, const std::string &name, const Settings &settings)
    : Device(machine, name), outer_(machine.needed_memory(settings.text("memory"))),
      thread_(machine.checks().add_thread(name, "a look at the status of '" + name + "' that shows its end", true)),
      channels_at_(settings.word("channels")), common_at_(settings.word("common")),
      clock_bit_(1u << settings["clock_bit"]), queue_(settings.word("queue")),
      clock_numerator_(settings["clock_numerator"]), clock_denominator_(settings["clock_denominator"]),
      read_start_(settings["read_start"]), read_word_(settings["read_word"]), row_(settings["row"]),
      write_start_(settings["write_start"]), write_word_(settings["write_word"]) {
    if (settings.has("events")) {
        events_ = &machine.needed_device(settings.text("events"));
        first_line_ = settings.word("event");
    }
}

Reply UdmaHyper::access(const Access &access) {
    const uint32_t offset = access.offset;
    if (offset == 0) {
        if (access.write) {
            clocks_ = access.value;
            start_next(access.time);
        }
        return {.value = clocks_};
    }
    if (offset >= channels_at_ && offset < channels_at_ + ids * channel_bytes &&
        (offset - channels_at_) % channel_bytes < 4 * registers)
        return channel_register((offset - channels_at_) / channel_bytes, (offset - channels_at_) % channel_bytes / 4,
                                access);
    const bool common = offset >= common_at_ && offset < common_at_ + 4 * common_registers;
    uint32_t &value = common ? common_[(offset - common_at_) / 4] : others_[offset];
    if (access.write)
        value = access.value;
    return {.value = value};
}

Reply UdmaHyper::channel_register(uint32_t id, uint32_t number, const Access &access) {
    if (!access.write)
        return {.value = number == status_register ? status(id, access.hart) : channels_[id].values[number]};
    channels_[id].values[number] = access.value;
    if ((number == rx_config || number == tx_config) && (access.value & config_enable) != 0)
        return ask(id, number == rx_config, access);
    return {};
}

Reply UdmaHyper::ask(uint32_t id, bool read, const Access &access) {
    Channel &channel = channels_[id];
    const auto &values = channel.values;
    Request request{.id = id,
                    .read = read,
                    .address = values[read ? rx_address : tx_address],
                    .size = values[read ? rx_size : tx_size],
                    .outer = values[outer_address]};
    if (values[outer_rows_on] != 0) {
        request.outer_row = values[outer_row];
        request.outer_stride = values[outer_stride];
    }
    if (values[rows_on] != 0) {
        request.row = values[row_bytes];
        request.stride = values[row_stride];
    }
    request.asked = access.time;
    request.hart = access.hart.index;
    request.pc = access.pc;
    if (request.size == 0 || !describe(request))
        return {};
    if (channel.waiting >= queue_) {
        channel.blocked.emplace_back(access.hart.index, request);
        return {.asleep = true};
    }
    enqueue(request, access.time);
    return {};
}

// Checks where the request goes, and tells of it.
bool UdmaHyper::describe(Request &request) {
    std::vector<Range> ranges;
    const uint32_t row = request.row == 0 ? request.size : request.row;
    for (uint32_t byte = 0; byte < request.size; byte += row) {
        const uint32_t begin = place(request.address, request.row, request.stride, byte);
        ranges.push_back({begin, begin + std::min(row, request.size - byte)});
    }
    const char *problem = nullptr;
    uint32_t address = 0;
    for (const Range &range : ranges)
        if (machine_.bytes(range.begin, range.end - range.begin).empty()) {
            problem = "a transfer goes outside of all memories";
            address = range.begin;
        }
    const uint32_t outer_row = request.outer_row == 0 ? request.size : request.outer_row;
    for (uint32_t byte = 0; byte < request.size; byte += outer_row) {
        const uint32_t first = place(request.outer, request.outer_row, request.outer_stride, byte);
        const uint32_t bytes = std::min(outer_row, request.size - byte);
        if (first > outer_.size || bytes > outer_.size - first) {
            problem = "a transfer goes beyond the end of the memory outside";
            address = first;
        }
    }
    if (problem != nullptr) {
        machine_.stop_with(
            Fault{"bad-access", "'" + name() + "': " + problem, request.hart, request.pc, address, request.asked});
        return false;
    }
    ++transfers_;
    (request.read ? bytes_read_ : bytes_written_) += request.size;
    if (!machine_.wants_transfers())
        return true;
    char what[96];
    snprintf(what, sizeof what, "%u bytes %s 0x%08x %s 0x%08x", request.size, request.read ? "from" : "to",
             request.outer, request.read ? "to" : "from", request.address);
    Transfer transfer{.what = outer_.name + ": " + what,
                      .lane = name(),
                      .thread = thread_,
                      .hart = request.hart,
                      .pc = request.pc,
                      .started = request.asked,
                      .bytes = request.size};
    (request.read ? transfer.writes : transfer.reads) = std::move(ranges);
    request.transfer = machine_.transfer_started(std::move(transfer));
    channels_[request.id].transfers.push_back(request.transfer);
    return true;
}

void UdmaHyper::enqueue(Request request, int64_t time) {
    ++channels_[request.id].waiting;
    queued_.push_back(request);
    start_next(time);
}

void UdmaHyper::start_next(int64_t time) {
    if (running_ || queued_.empty() || (clocks_ & clock_bit_) == 0)
        return;
    running_ = queued_.front();
    queued_.pop_front();
    running_since_ = time;
    machine_.schedule(time + cycles(*running_), *this, 0);
    Channel &channel = channels_[running_->id];
    --channel.waiting;
    if (channel.blocked.empty())
        return;
    const auto [hart, request] = channel.blocked.front();
    channel.blocked.pop_front();
    enqueue(request, time);
    machine_.wake(machine_.harts()[hart], time, 0);
}

uint32_t UdmaHyper::rows(const Request &request) const {
    const auto count = [&request](uint32_t row) { return row == 0 ? 1 : (request.size + row - 1) / row; };
    return std::max(count(request.outer_row), count(request.row));
}

int64_t UdmaHyper::cycles(const Request &request) const {
    const int64_t latency = int64_t{common_[common_latency]} << (common_[common_double_latency] & 1);
    const int64_t words = (int64_t{request.size} + 3) / 4;
    const int64_t more_rows = rows(request) - 1;
    // The memory outside takes or gives its bytes in machine cycles; each row is a burst of its own.
    const int64_t outside =
        read_start_ + (int64_t{request.size} * read_word_ + 3) / 4 + latency * (more_rows + 1) + row_ * more_rows;
    if (request.read)
        return outside;
    // Words come from the machine's memory at the pace of the system clock while the ones before are written.
    const int64_t inside = (write_start_ + words * write_word_) * clock_numerator_ / clock_denominator_;
    return std::max(outside, inside + row_ * more_rows);
}

void UdmaHyper::copy(const Request &request) {
    for (uint32_t byte = 0; byte < request.size;) {
        uint32_t bytes = request.size - byte;
        for (const uint32_t row : {request.outer_row, request.row})
            if (row != 0)
                bytes = std::min(bytes, row - byte % row);
        uint8_t *inside = machine_.bytes(place(request.address, request.row, request.stride, byte), bytes).data();
        uint8_t *outside = outer_.data + place(request.outer, request.outer_row, request.outer_stride, byte);
        std::memcpy(request.read ? inside : outside, request.read ? outside : inside, bytes);
        byte += bytes;
    }
}

void UdmaHyper::happen(uint32_t) {
    const Request request = *running_;
    const int64_t now = machine_.now();
    running_.reset();
    busy_ += static_cast<uint64_t>(now - running_since_);
    copy(request);
    if (request.transfer != no_transfer)
        machine_.transfer_done(request.transfer, now);
    if (events_ != nullptr)
        events_->signal(first_line_ + 2 * request.id + (request.read ? 0 : 1), now);
    start_next(now);
}

uint32_t UdmaHyper::status(uint32_t id, const Hart &hart) {
    Channel &channel = channels_[id];
    const bool runs = running_ && running_->id == id;
    const uint32_t left = channel.waiting + (runs ? 1 : 0);
    // Transfers of an id end in the order in which they were asked for.
    while (channel.transfers.size() > left + channel.blocked.size() + 1)
        channel.transfers.pop_front();
    if (channel.transfers.size() > left + channel.blocked.size())
        machine_.checks().ended(hart, channel.transfers.front());
    return (left != 0 ? 1u : 0u) | channel.waiting << 1;
}

std::map<std::string, uint64_t> UdmaHyper::statistics() const {
    return {{"transfers", transfers_}, {"bytes_read", bytes_read_}, {"bytes_written", bytes_written_}, {"busy", busy_}};
}

} // namespace tilewright
