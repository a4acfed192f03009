#include "devices/snitch_core.h"

#include "devices/idma.h"
#include "devices/snitch_cluster.h"

namespace tilewright {

namespace {

enum : uint32_t { csr_fflags = 0x001, csr_fcsr = 0x003, csr_streams = 0x7c0, csr_barrier = 0x7c2, csr_formats = 0x800 };
enum : uint32_t { all_streams = 31 }; // the number that writes to all of them

} // namespace

SnitchCore::SnitchCore(Machine &machine, Hart &hart, const SnitchSettings &settings)
    : machine_(machine), hart_(hart), settings_(settings) {
    // The first stream has the port of the core's own loads and stores.
    for (uint32_t i = 0; i < settings.streams; ++i)
        streams_.push_back(
            std::make_unique<Stream>(machine, hart, settings.stream, i == 0 ? &hart.port_free : nullptr));
}

SnitchCore::Entry SnitchCore::entry_of(const Op *op, uint32_t operand, int64_t from) const {
    const Timing timing = row_of(op->code).timing;
    const FloatRow &row = float_row(op->code);
    Entry made;
    made.op = op;
    made.row = &row;
    made.kind = timing == Timing::fp_load ? Kind::load : timing == Timing::fp_store ? Kind::store : Kind::compute;
    made.latency = static_cast<uint8_t>(op->cycles + hart_.group->pipeline.use[static_cast<size_t>(timing)]);
    made.operand = operand;
    made.from = from;
    const bool computes = made.kind == Kind::compute;
    const auto place = [&made](uint32_t where, bool used, uint32_t number) {
        made.places |= (used ? number : unread) << where;
        made.used |= (used ? 1u : 0u) << where;
    };
    place(first_place, computes && row.reads_a, op->rs1);
    place(second_place, computes ? row.reads_b : made.kind == Kind::store, op->rs2);
    place(third_place, computes && (row.reads_c || row.reads_d), row.reads_d ? op->rd : op->rs3);
    place(target_place, computes ? !row.integer_result : made.kind == Kind::load, op->rd);
    const auto mode = static_cast<uint32_t>(op->imm);
    made.usual = computes && formats_ == 0 && !(row.divides && !settings_.divider) &&
                 (!row.rounds || mode == rounding_dynamic || mode == rounding_mode::nearest_even);
    return made;
}

Outcome SnitchCore::offload(const Op *op, uint32_t operand, int64_t &time) {
    const bool for_hart = float_row(op->code).integer_result;
    const bool waits = !is_empty() || (is_streaming() && !for_hart);
    if (waits && !for_hart && held_ >= settings_.buffer)
        return wait(Wait::room);
    const Entry given = entry_of(op, operand, time + settings_.offload);
    if (!waits) {
        int64_t at = 0;
        if (!issue(given, at))
            return Outcome::fault;
        const int64_t waited = std::max<int64_t>(at - settings_.offload - settings_.ahead - time, 0);
        hart_.counters.stall_unit += static_cast<uint64_t>(waited);
        time += waited;
        return Outcome::done;
    }
    if (for_hart && !collecting_.empty()) {
        machine_.fail(hart_, op, "frep", "an instruction with an integer result cannot be part of a repeated body",
                      hart_.code->pc_of(op));
        return Outcome::fault;
    }
    if (for_hart)
        return wait(Wait::end);
    add(given);
    wake_self(time + settings_.offload);
    return Outcome::done;
}

Outcome SnitchCore::configure(uint32_t address, uint32_t value, const Op *op, int64_t &time) {
    const uint32_t number = address & 31, place = address >> 5 & 127;
    if (number != all_streams && number >= streams_.size()) {
        machine_.fail(hart_, op, "stream", "there is no stream " + std::to_string(number), hart_.code->pc_of(op));
        return Outcome::fault;
    }
    for (size_t i = 0; i < streams_.size(); ++i)
        if ((number == all_streams || number == i) && !streams_[i]->accepts()) {
            awaited_ = streams_[i].get();
            return wait(Wait::stream);
        }
    for (size_t i = 0; i < streams_.size(); ++i)
        if ((number == all_streams || number == i) && !streams_[i]->write(place, value, op, time)) {
            machine_.fail(hart_, op, "stream", "a stream has no register " + std::to_string(place),
                          hart_.code->pc_of(op));
            return Outcome::fault;
        }
    for (uint32_t i = 0; i < stream_registers_; ++i)
        look_at_stream(i);
    if (!is_empty())
        wake_self(time + 1); // it may have waited for this
    return Outcome::done;
}

Outcome SnitchCore::special(const Op *op, uint32_t first, uint32_t second, uint32_t &result, int64_t &time) {
    switch (op->code) {
    case op_scfgwi:
        return configure(static_cast<uint32_t>(op->imm), first, op, time);
    case op_scfgw:
        return configure(second, first, op, time);
    case op_scfgri:
    case op_scfgr: {
        const uint32_t address = op->code == op_scfgr ? second : static_cast<uint32_t>(op->imm);
        if ((address & 31) < streams_.size())
            result = streams_[address & 31]->read(address >> 5 & 127);
        return Outcome::done;
    }
    case op_frep_o:
    case op_frep_i:
        return repeat(op, first);
    default:
        if (dma != nullptr)
            return dma->execute(hart_, op, first, second, result, time);
        machine_.fail(hart_, op, "illegal-instruction", "this core has no DMA", hart_.code->pc_of(op));
        return Outcome::fault;
    }
}

Outcome SnitchCore::before_csr(const Op *op, uint32_t number, int64_t &time) {
    if (number == csr_barrier) {
        if (unfenced_)
            machine_.report(Check::unfenced,
                            "comes to a barrier although its floating-point stores may still be under way: read a "
                            "floating-point register (fmv.x.w) and use the result before it",
                            hart_, hart_.code->pc_of(op), hart_.code->pc_of(op));
        return cluster != nullptr ? cluster->arrive(hart_, op, time) : Outcome::done;
    }
    const bool floats = number >= csr_fflags && number <= csr_fcsr;
    if (!floats && number != csr_streams && number != csr_formats)
        return Outcome::done;
    if (!is_empty())
        return wait(Wait::end);
    if (number == csr_streams)
        time = std::max(time, time_ - settings_.ahead);
    return Outcome::done;
}

bool SnitchCore::read_csr(uint32_t number, uint32_t &value) const {
    if (number == csr_streams)
        value = is_streaming() ? 1 : 0;
    else if (number == csr_formats)
        value = formats_;
    else if (number == csr_barrier)
        value = 0;
    else
        return false;
    return true;
}

bool SnitchCore::write_csr(uint32_t number, uint32_t value, int64_t time) {
    if (number == csr_streams) {
        set_streaming((value & 1) != 0);
        time_ = std::max(time_, time);
    } else if (number == csr_formats) {
        formats_ = value & 3;
    } else {
        return number == csr_barrier;
    }
    return true;
}

namespace {

// Makes the extensions of a group of harts.
class SnitchCores final : public Device {
  public:
    SnitchCores(Machine &machine, const std::string &name, const Settings &settings) : Device(machine, name) {
        SnitchSettings given;
        given.streams = settings.word("streams");
        given.buffer = settings.word("buffer");
        given.loops = settings.word("loops");
        given.divider = settings["divider"] != 0;
        given.offload = settings["offload_cycles"];
        given.back = settings["back_cycles"];
        given.ahead = settings["ahead_cycles"];
        if (settings.word("stream_depth") > Stream::most)
            throw std::invalid_argument("streams hold at most " + std::to_string(Stream::most) + " elements");
        given.stream = {settings.word("stream_depth"), settings["stream_latency"], settings["stream_start"],
                        settings.word("stream_bytes")};
        for (uint32_t i = 0; i < settings.word("harts"); ++i) {
            Hart &hart = machine.harts()[settings.word("first_hart") + i];
            auto core = std::make_unique<SnitchCore>(machine, hart, given);
            cores_.push_back(core.get());
            hart.extension = std::move(core);
        }
    }
    Reply access(const Access &) override { return {.refused = true}; }
    std::map<std::string, uint64_t> statistics() const override {
        uint64_t executed = 0, repeated = 0;
        for (const SnitchCore *core : cores_) {
            executed += core->executed();
            repeated += core->repeated();
        }
        return {{"operations", executed}, {"repeated", repeated}};
    }

  private:
    std::vector<SnitchCore *> cores_;
};

} // namespace

std::unique_ptr<Device> make_snitch(const std::string &kind, Machine &machine, const std::string &name,
                                    const Settings &settings) {
    if (kind == "snitch_core")
        return std::make_unique<SnitchCores>(machine, name, settings);
    if (kind == "snitch_cluster")
        return std::make_unique<SnitchCluster>(machine, name, settings);
    if (kind == "idma")
        return std::make_unique<Idma>(machine, name, settings);
    return nullptr;
}

} // namespace tilewright
