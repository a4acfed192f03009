#include "devices/snitch_core.h"

#include "devices/idma.h"
#include "devices/snitch_cluster.h"
#include "machine/float_unit.h"

namespace tilewright {

namespace {

enum : uint32_t { csr_fflags = 0x001, csr_fcsr = 0x003, csr_streams = 0x7c0, csr_barrier = 0x7c2, csr_formats = 0x800 };
enum : uint32_t { all_streams = 31 }; // the number that writes to all of them

bool divides(const Op &op) {
    const Timing timing = row_of(op.code).timing;
    return timing == Timing::fp_divide || timing == Timing::fp_sqrt;
}
uint32_t bytes_of(const Op &op) {
    switch (op.code) {
    case op_x_flb:
    case op_x_fsb:
        return 1;
    case op_x_flh:
    case op_x_fsh:
        return 2;
    case op_x_flw:
    case op_x_fsw:
        return 4;
    default:
        return 8;
    }
}

} // namespace

SnitchCore::SnitchCore(Machine &machine, Hart &hart, const SnitchSettings &settings)
    : machine_(machine), hart_(hart), settings_(settings) {
    // The first stream has the port of the core's own loads and stores.
    for (uint32_t i = 0; i < settings.streams; ++i)
        streams_.emplace_back(machine, hart, settings.stream, i == 0 ? &hart.port_free : nullptr);
}

SnitchCore::Entry SnitchCore::entry_of(const Op *op, uint32_t operand, int64_t from) const {
    const Timing timing = row_of(op->code).timing;
    Entry made;
    made.op = op;
    made.row = &float_row(op->code);
    made.kind = timing == Timing::fp_load ? Kind::load : timing == Timing::fp_store ? Kind::store : Kind::compute;
    made.latency = static_cast<uint8_t>(op->cycles + hart_.group->pipeline.use[static_cast<size_t>(timing)]);
    made.operand = operand;
    made.from = from;
    return made;
}

SnitchCore::Places SnitchCore::places_of(const Op &op, uint32_t shift, uint32_t mask) {
    if (mask == 0)
        return {op.rd, op.rs1, op.rs2, op.rs3};
    const auto place = [shift, mask](uint8_t number, uint32_t bit) {
        return static_cast<uint8_t>((mask >> bit & 1) != 0 ? (number + shift) % 32 : number);
    };
    return {place(op.rd, 0), place(op.rs1, 1), place(op.rs2, 2), place(op.rs3, 3)};
}

int64_t SnitchCore::source_ready(uint8_t number) const {
    return is_stream(number) && !streams_[number].is_writing() ? streams_[number].ready() : ready_[number];
}

int64_t SnitchCore::target_ready(uint8_t number) const {
    return is_stream(number) ? (streams_[number].is_writing() ? streams_[number].room() : never) : ready_[number];
}

int64_t SnitchCore::issue_time(const Entry &entry, const Places &places) const {
    int64_t at = std::max(time_, entry.from);
    if (entry.kind == Kind::load)
        return std::max({at, target_ready(places.rd), hart_.port_free});
    if (entry.kind == Kind::store)
        return std::max({at, source_ready(places.rs2), hart_.port_free});
    const FloatRow &row = *entry.row;
    if (row.reads_a)
        at = std::max(at, source_ready(places.rs1));
    if (row.reads_b)
        at = std::max(at, source_ready(places.rs2));
    if (row.reads_c)
        at = std::max(at, source_ready(places.rs3));
    if (row.reads_d)
        at = std::max(at, source_ready(places.rd));
    if (!row.integer_result)
        at = std::max(at, target_ready(places.rd));
    return at;
}

uint64_t SnitchCore::operand_of(uint8_t number, int64_t time) {
    return is_stream(number) && !streams_[number].is_writing() ? streams_[number].take(time) : hart_.f[number];
}

void SnitchCore::result_to(const Op *op, uint8_t number, uint64_t value, int64_t ready, int64_t written) {
    if (is_stream(number)) {
        unfenced_ = true;
        streams_[number].put(value, op, written);
        return;
    }
    hart_.f[number] = value;
    ready_[number] = ready;
}

bool SnitchCore::execute_access(const Entry &entry, const Places &places, int64_t time) {
    const Op *op = entry.op;
    const uint32_t address = entry.operand;
    const bool store = entry.kind == Kind::store;
    const uint32_t size = bytes_of(*op);
    uint64_t value = store ? operand_of(places.rs2, time) : 0;
    int64_t at = time;
    const NearView &near = *hart_.near;
    const uint32_t offset = address - near.base;
    if (offset < near.size && address % size == 0 && !machine_.checks().on()) {
        if (near.bank_slots != nullptr)
            at = near.memory->take_slot(offset, machine_.now(), time);
        hart_.port_free = at + 1;
        if (store)
            std::memcpy(near.data + offset, &value, size);
        else
            std::memcpy(&value, near.data + offset, size);
    } else {
        if (machine_.access(hart_, op, address, size, store ? AccessKind::store : AccessKind::load, value, at) !=
            Outcome::done)
            return false;
        if (offset < near.size)
            hart_.port_free = at + 1;
    }
    if (store) {
        unfenced_ = true;
        return true;
    }
    if (size < 8)
        value |= ~uint64_t{0} << (8 * size);
    const int64_t ready = at + entry.latency;
    result_to(op, places.rd, value, ready, ready);
    return true;
}

bool SnitchCore::execute(const Entry &entry, const Places &places, int64_t time) {
    time_ = time + 1;
    ++executed_;
    if (entry.kind != Kind::compute)
        return execute_access(entry, places, time);
    const Op *op = entry.op;
    const FloatRow &row = *entry.row;
    if (!settings_.divider && divides(*op)) {
        machine_.fail(hart_, op, "no-divider",
                      "this core has no divider for floats: compute the reciprocal or the root another way",
                      hart_.code->pc_of(op));
        return false;
    }
    FloatCall call;
    call.formats = formats_;
    if (row.integer_operand)
        call.a = static_cast<uint64_t>(int64_t{static_cast<int32_t>(entry.operand)});
    else if (row.reads_a)
        call.a = operand_of(places.rs1, time);
    if (row.reads_b)
        call.b = operand_of(places.rs2, time);
    if (row.reads_c)
        call.c = operand_of(places.rs3, time);
    else if (row.reads_d)
        call.c = hart_.f[places.rd];
    uint64_t result = 0;
    if (!compute_float(hart_, *op, row, call, result)) {
        machine_.fail(hart_, op, "illegal-instruction", "a rounding mode that does not exist", hart_.code->pc_of(op));
        return false;
    }
    if (call.unboxed)
        machine_.report(Check::unboxed,
                        "an operand of " + std::string(row_of(op->code).name) +
                            " is not boxed (its upper bits are not all ones), so that it counts as a NaN",
                        hart_, hart_.code->pc_of(op), hart_.code->pc_of(op));
    const int64_t ready = time + entry.latency;
    if (!row.integer_result) {
        result_to(op, places.rd, result, ready, ready);
        return true;
    }
    hart_.x[places.rd] = static_cast<uint32_t>(result);
    hart_.ready[places.rd] = ready + settings_.back;
    hart_.ready[nowhere] = 0;
    hart_.x[nowhere] = 0;
    unfenced_ = false;
    return true;
}

Outcome SnitchCore::offload(const Op *op, uint32_t operand, int64_t &time) {
    const Entry given = entry_of(op, operand, time + settings_.offload);
    const bool for_hart = given.kind == Kind::compute && given.row->integer_result;
    const bool waits = !is_empty() || (streaming_ && !for_hart);
    if (!waits) {
        const Places places = places_of(*op, 0, 0);
        const int64_t at = issue_time(given, places);
        if (at >= never) {
            machine_.fail(hart_, op, "stream", "an instruction reads a stream that no job brings anything to",
                          hart_.code->pc_of(op));
            return Outcome::fault;
        }
        if (!execute(given, places, at))
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
    if (for_hart || held_ >= settings_.buffer)
        return wait(for_hart ? Wait::end : Wait::room);
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
        if ((number == all_streams || number == i) && !streams_[i].accepts()) {
            awaited_ = &streams_[i];
            return wait(Wait::stream);
        }
    for (size_t i = 0; i < streams_.size(); ++i)
        if ((number == all_streams || number == i) && !streams_[i].write(place, value, op, time)) {
            machine_.fail(hart_, op, "stream", "a stream has no register " + std::to_string(place),
                          hart_.code->pc_of(op));
            return Outcome::fault;
        }
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
            result = streams_[address & 31].read(address >> 5 & 127);
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
        value = streaming_ ? 1 : 0;
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
        streaming_ = (value & 1) != 0;
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
        uint64_t executed = 0;
        for (const SnitchCore *core : cores_)
            executed += core->executed();
        return {{"operations", executed}};
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
