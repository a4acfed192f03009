// A DMA in parts: one description for all, cut at every row of the banks, of which each engine moves what lies in its own.
#include "devices/kinds.h"
#include "machine/machine.h"
#include "machine/tiles.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <deque>

namespace tilewright {

namespace {

// Settings: memory (the near one, in tiles), engines (of the whole machine), beat (bytes that one moves in a cycle), queue
// (transfers that wait), start_cycles (from the start of one to its first beat).
class TileDma final : public Device {
  public:
    TileDma(Machine &machine, const std::string &name, const Settings &settings)
        : Device(machine, name), near_(machine.needed_memory(settings.text("memory"))), tiles_(machine.tiles_of(near_)),
          engines_(settings.word("engines")), beat_(settings.word("beat")), queue_(settings.word("queue")),
          start_cycles_(settings["start_cycles"]),
          row_(tiles_.description().tiles * tiles_.description().banks_per_tile * word_bytes),
          thread_(machine.checks().add_thread(name, "to read '" + name + "' until it says that it is done", true)) {
        if (engines_ == 0 || row_ % (engines_ * beat_) != 0)
            throw std::invalid_argument(name + ": a row of " + std::to_string(row_) +
                                        " bytes is not whole beats of its engines");
    }

    Reply access(const Access &access) override {
        switch (access.offset) {
        case reg_source:
        case reg_target:
        case reg_bytes:
        case reg_configuration:
            if (access.write)
                values_[access.offset / 4] = access.value;
            return {.value = values_[access.offset / 4]};
        case reg_status:
            return {.value = jobs_.empty() ? 0u : 1u};
        case reg_start:
            return access.write ? Reply{.refused = true} : start(access);
        case reg_done:
            if (jobs_.empty())
                machine_.checks().end_shown(access.hart, thread_);
            return {.value = jobs_.empty() ? 1u : 0u};
        default:
            return {.refused = true};
        }
    }

    void happen(uint32_t) override {
        const int64_t time = machine_.now();
        if (jobs_.front().left == 0)
            finish(time);
        if (!jobs_.empty())
            machine_.schedule(time + move_row(time), *this, 0);
    }

    std::map<std::string, uint64_t> statistics() const override {
        return {{"transfers", transfers_}, {"bytes_in", bytes_in_}, {"bytes_out", bytes_out_}, {"busy", busy_}};
    }

  private:
    static constexpr uint32_t word_bytes = 4;
    enum : uint32_t {
        reg_source = 0x00,
        reg_target = 0x04,
        reg_bytes = 0x08,
        reg_configuration = 0x0c,
        reg_status = 0x10,
        reg_start = 0x14,
        reg_done = 0x18,
    };

    struct Job {
        uint32_t near, far, left; // offset in the near memory, address, bytes
        bool inward;
        uint32_t transfer;
    };

    Reply start(const Access &access) {
        if (jobs_.size() > queue_) {
            waiting_.push_back(access);
            return {.asleep = true};
        }
        return {.value = begin(access)};
    }

    uint32_t begin(const Access &access) {
        const uint32_t source = values_[0], target = values_[1], bytes = values_[2];
        if (bytes == 0)
            return ++ids_;
        const bool inward = near_.holds(target, bytes);
        const uint32_t near = inward ? target : source, far = inward ? source : target;
        if (!near_.holds(near, bytes) || machine_.bytes(far, bytes).empty() || near_.holds(far, bytes)) {
            machine_.stop_with(Fault{"bad-access",
                                     "a DMA transfer does not go between '" + near_.name + "' and another memory",
                                     access.hart.index, access.pc, near_.holds(near, bytes) ? far : near, access.time});
            return 0;
        }
        Job job{near - near_.base, far, bytes, inward, no_transfer};
        ++transfers_;
        (inward ? bytes_in_ : bytes_out_) += bytes;
        if (machine_.wants_transfers())
            job.transfer = describe(job, source, target, access);
        jobs_.push_back(job);
        if (jobs_.size() == 1)
            machine_.schedule(access.time + start_cycles_, *this, 0);
        return ++ids_;
    }

    uint32_t describe(const Job &job, uint32_t source, uint32_t target, const Access &access) {
        char what[96];
        snprintf(what, sizeof what, "DMA %u bytes, 0x%08x -> 0x%08x", job.left, source, target);
        const uint32_t id = machine_.transfer_started({.what = what,
                                                       .lane = name() + (job.inward ? " in" : " out"),
                                                       .thread = thread_,
                                                       .hart = access.hart.index,
                                                       .pc = access.pc,
                                                       .started = access.time,
                                                       .bytes = job.left,
                                                       .reads = {{source, source + job.left}},
                                                       .writes = {{target, target + job.left}}});
        if ((source | target) % word_bytes != 0)
            machine_.report(Check::unaligned_transfer, "a DMA transfer does not start at a multiple of 4 bytes",
                            access.hart, access.pc, target % word_bytes != 0 ? target : source, id);
        return id;
    }

    void finish(int64_t time) {
        if (jobs_.front().transfer != no_transfer)
            machine_.transfer_done(jobs_.front().transfer, time);
        jobs_.pop_front();
        if (waiting_.empty())
            return;
        const Access next = waiting_.front();
        waiting_.pop_front();
        machine_.wake(next.hart, time, begin(next));
    }

    // Moves what the first transfer has in one row of the banks. All engines work at once, and their beats go before the
    // accesses of harts that come later. Returns the cycles that it takes.
    int64_t move_row(int64_t time) {
        Job &job = jobs_.front();
        const uint32_t bytes = std::min(job.left, row_ - job.near % row_);
        std::vector<uint32_t> beats(engines_, 0);
        uint32_t most = 1;
        for (uint32_t at = job.near; at < job.near + bytes; at += beat_ - at % beat_) {
            uint32_t &mine = beats[tiles_.bank_of(at) / (row_ / word_bytes / engines_)];
            for (uint32_t word = at & ~(word_bytes - 1); word < std::min(job.near + bytes, (at / beat_ + 1) * beat_);
                 word += word_bytes)
                tiles_.take(word, time, time + mine);
            most = std::max(most, ++mine);
        }
        const auto far = machine_.bytes(job.far, bytes);
        if (job.inward)
            std::memcpy(near_.data + job.near, far.data(), bytes);
        else
            std::memcpy(far.data(), near_.data + job.near, bytes);
        busy_ += most;
        job.near += bytes;
        job.far += bytes;
        job.left -= bytes;
        return most;
    }

    Memory &near_;
    Tiles &tiles_;
    uint32_t engines_, beat_;
    size_t queue_;
    int64_t start_cycles_;
    uint32_t row_;
    uint32_t thread_;
    std::array<uint32_t, 4> values_{};
    std::deque<Job> jobs_;       // the first one is under way
    std::deque<Access> waiting_; // for room
    uint32_t ids_ = 0;
    uint64_t transfers_ = 0, bytes_in_ = 0, bytes_out_ = 0, busy_ = 0;
};

} // namespace

std::unique_ptr<Device> make_tile_dma(Machine &machine, const std::string &name, const Settings &settings) {
    return std::make_unique<TileDma>(machine, name, settings);
}

} // namespace tilewright
