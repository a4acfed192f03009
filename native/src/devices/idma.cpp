#include "devices/idma.h"

#include "devices/snitch_core.h"

namespace tilewright {

namespace {

constexpr uint32_t beat_bytes = 64, page_bytes = 4096;
enum : uint32_t { tag_move = 0, tag_end = 1 };

int64_t beats_of(uint32_t address, uint32_t size) {
    return (address % beat_bytes + size + beat_bytes - 1) / beat_bytes;
}

} // namespace

Idma::Idma(Machine &machine, const std::string &name, const Settings &settings)
    : Device(machine, name), near_(machine.needed_memory(settings.text("memory"))), queue_(settings.word("queue")),
      burst_(settings.word("burst")), outstanding_(settings.word("outstanding")), setup_(settings["setup_cycles"]),
      read_latency_(settings["read_latency"]), write_latency_(settings["write_latency"]),
      far_rate_(settings["far_bytes_per_cycle"]), far_lead_(settings["far_lead_cycles"]),
      far_again_(settings["far_again_cycles"]), far_ahead_(settings.word("far_ahead_bursts")),
      near_side_(settings["near_side"] != 0), bank_conflicts_(settings["bank_conflicts"] != 0),
      thread_(machine.checks().add_thread(name,
                                          "reads that the DMA is not busy any more (dmstati rd, 2); that an id is "
                                          "complete does not say that its bytes are there",
                                          true)) {
    begun_ids_ = settings.word("first_id");
    completed_ids_ = begun_ids_ - 1;
    Hart &hart = machine.harts().at(settings.word("first_hart") + settings.word("core"));
    if (auto *core = dynamic_cast<SnitchCore *>(hart.extension.get()))
        core->dma = this;
}

uint32_t Idma::status(const Hart &hart, uint32_t selector) {
    switch (selector & 3) {
    case 0:
        return completed_ids_;
    case 1:
        return begun_ids_;
    case 2: {
        const bool busy = !copies_.empty() || !ending_.empty();
        if (!busy && last_transfer_ != no_transfer)
            machine_.checks().ended(hart, last_transfer_);
        return busy;
    }
    default:
        return copies_.size() >= queue_;
    }
}

Outcome Idma::execute(Hart &hart, const Op *op, uint32_t first, uint32_t second, uint32_t &result, int64_t &time) {
    const uint64_t both = uint64_t{second} << 32 | first;
    switch (op->code) {
    case op_dmsrc:
        next_.source = both;
        break;
    case op_dmdst:
        next_.target = both;
        break;
    case op_dmstr:
        next_.source_stride = static_cast<uint64_t>(int64_t{static_cast<int32_t>(first)});
        next_.target_stride = static_cast<uint64_t>(int64_t{static_cast<int32_t>(second)});
        break;
    case op_dmrep:
        next_.rows = first;
        break;
    case op_dmcpyi:
    case op_dmcpy: {
        const uint32_t options = op->code == op_dmcpy ? second : static_cast<uint32_t>(op->imm);
        return copy(hart, op, first, (options & 2) != 0, result, time);
    }
    case op_dmstati:
        result = status(hart, static_cast<uint32_t>(op->imm));
        break;
    case op_dmstat:
        result = status(hart, second);
        break;
    default:
        break;
    }
    return Outcome::done;
}

Outcome Idma::copy(Hart &hart, const Op *op, uint32_t bytes, bool two_dimensional, uint32_t &result, int64_t time) {
    if (copies_.size() >= queue_) {
        hart.state = HartState::asleep;
        waiting_.push_back(&hart);
        return Outcome::asleep;
    }
    result = begun_ids_++;
    Copy asked = next_;
    asked.bytes = bytes;
    asked.rows = two_dimensional ? next_.rows : 1;
    asked.asked = time;
    if (bytes == 0 || asked.rows == 0) {
        ++completed_ids_;
        return Outcome::done;
    }
    if (!describe(asked, hart, op, time))
        return Outcome::fault;
    copies_.push_back(asked);
    if (busy_from_ < 0)
        busy_from_ = time;
    if (copies_.size() == 1)
        plan(time);
    return Outcome::done;
}

// Where it goes, for checks and traces; false where there is no memory.
bool Idma::describe(Copy &copy, Hart &hart, const Op *op, int64_t time) {
    const uint32_t pc = hart.code->pc_of(op);
    if (near_side_ && !is_near(copy.source) && !is_near(copy.target)) {
        machine_.stop_with(Fault{"bad-access", "one side of a transfer must be " + near_.name, hart.index, pc,
                                 static_cast<uint32_t>(copy.source), time});
        return false;
    }
    std::vector<Range> reads, writes;
    const auto add = [](std::vector<Range> &ranges, uint32_t begin, uint32_t size) {
        if (!ranges.empty() && ranges.back().end == begin)
            ranges.back().end += size;
        else
            ranges.push_back({begin, begin + size});
    };
    for (uint32_t row = 0; row < copy.rows; ++row) {
        const auto from = static_cast<uint32_t>(copy.source + row * copy.source_stride);
        const auto to = static_cast<uint32_t>(copy.target + row * copy.target_stride);
        for (const uint32_t address : {from, to})
            if (machine_.bytes(address, copy.bytes).empty()) {
                machine_.stop_with(
                    Fault{"bad-access", "a DMA transfer goes outside of all memories", hart.index, pc, address, time});
                return false;
            }
        if (machine_.wants_transfers()) {
            add(reads, from, copy.bytes);
            add(writes, to, copy.bytes);
        }
    }
    ++transfers_;
    (is_near(copy.target) ? bytes_in_ : bytes_out_) += uint64_t{copy.bytes} * copy.rows;
    if (!machine_.wants_transfers())
        return true;
    char what[96];
    snprintf(what, sizeof what, "DMA %u x %u bytes, 0x%08x -> 0x%08x", copy.rows, copy.bytes,
             static_cast<uint32_t>(copy.source), static_cast<uint32_t>(copy.target));
    copy.transfer = machine_.transfer_started(Transfer{.what = what,
                                                       .lane = name() + (is_near(copy.target) ? " in" : " out"),
                                                       .thread = thread_,
                                                       .hart = hart.index,
                                                       .pc = pc,
                                                       .started = time,
                                                       .bytes = uint64_t{copy.bytes} * copy.rows,
                                                       .reads = reads,
                                                       .writes = writes});
    last_transfer_ = copy.transfer;
    return true;
}

void Idma::plan(int64_t time) {
    Copy &copy = copies_.front();
    const auto source = static_cast<uint32_t>(copy.source + copy.row * copy.source_stride) + copy.moved;
    const auto target = static_cast<uint32_t>(copy.target + copy.row * copy.target_stride) + copy.moved;
    uint32_t size = std::min(copy.bytes - copy.moved, burst_);
    for (const uint32_t address : {source, target})
        size = std::min(size, page_bytes - address % page_bytes);
    const bool inward = !is_near(source);
    const int64_t latency = inward ? read_latency_ : write_latency_;
    // Bursts are asked for ahead of their data.
    issued_ = std::max(issued_ + 1, copy.asked + setup_);
    if (in_flight_.size() >= outstanding_) {
        issued_ = std::max(issued_, in_flight_.front());
        in_flight_.pop_front();
    }
    Burst &burst = burst_now_;
    burst = {source, target, size, 0, std::max(beats_of(source, size), beats_of(target, size))};
    if (far_rate_ == 0) {
        // As many beats as there are, one a cycle.
        burst.end = std::max(issued_ + latency, moved_until_) + burst.beats;
    } else {
        // The far memory gives so many bytes a cycle; what it is asked for first comes a little ahead of that.
        const int64_t waits = copy.bursts < far_ahead_ ? -far_lead_ : far_again_ - far_lead_;
        const int64_t served = static_cast<int64_t>(copy.far_bytes) / far_rate_ + waits;
        burst.end = std::max(issued_ + latency, inward ? copy.asked + setup_ + served : 0);
        burst.beats = 1;
    }
    ++copy.bursts;
    copy.far_bytes += size;
    moved_until_ = burst.end;
    in_flight_.push_back(burst.end);
    machine_.schedule(std::max(burst.end - burst.beats, time), *this, tag_move);
}

void Idma::happen(uint32_t tag) {
    if (tag == tag_move) {
        move();
        return;
    }
    if (ending_.front() != no_transfer)
        machine_.transfer_done(ending_.front(), machine_.now());
    ending_.pop_front();
    if (copies_.empty() && ending_.empty()) {
        busy_ += static_cast<uint64_t>(machine_.now() - busy_from_);
        busy_from_ = -1;
    }
}

void Idma::move() {
    const Burst burst = burst_now_;
    const int64_t now = machine_.now();
    Copy &copy = copies_.front();
    std::memmove(machine_.bytes(burst.target, burst.size).data(), machine_.bytes(burst.source, burst.size).data(),
                 burst.size);
    // A beat takes all banks of its line, and wins against the cores.
    if (bank_conflicts_)
        for (const uint32_t address : {burst.source, burst.target})
            if (is_near(address))
                for (int64_t beat = 0; beat < burst.beats; ++beat) {
                    const uint32_t line = (address - near_.base) / beat_bytes + static_cast<uint32_t>(beat);
                    for (uint32_t part = 0; part < beat_bytes; part += 1u << near_.bank_shift)
                        near_.block_slot(line * beat_bytes + part, now, now + beat);
                }
    copy.moved += burst.size;
    if (copy.moved == copy.bytes) {
        copy.moved = 0;
        ++copy.row;
    }
    if (copy.row == copy.rows) {
        ++completed_ids_; // the last burst is accepted
        ending_.push_back(copy.transfer);
        machine_.schedule(burst.end, *this, tag_end);
        copies_.pop_front();
        for (Hart *hart : std::exchange(waiting_, {}))
            machine_.resume(*hart, now);
    }
    if (!copies_.empty())
        plan(now);
}

std::map<std::string, uint64_t> Idma::statistics() const {
    return {{"transfers", transfers_}, {"bytes_in", bytes_in_}, {"bytes_out", bytes_out_}, {"busy", busy_}};
}

} // namespace tilewright
