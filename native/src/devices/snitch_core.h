// What a Snitch core has beside its integer pipeline: a floating-point subsystem that executes on its own, with a
// sequencer that repeats instructions (Xfrep), streams (Xssr), and the way to the DMA and to the barrier.
#pragma once

#include "devices/snitch_stream.h"
#include "isa/float_ops.h"
#include "machine/machine.h"

#include <array>
#include <memory>

namespace tilewright {

class Idma;
class SnitchCluster;

struct SnitchSettings {
    uint32_t streams = 3; // of each core
    uint32_t buffer = 16; // instructions that the sequencer holds
    uint32_t loops = 1;   // nested
    bool divider = false; // for fdiv and fsqrt
    int64_t offload = 1;  // cycles from the core to the subsystem
    int64_t back = 1;     // and from there to an integer register
    int64_t ahead = 2;    // cycles that the core goes on while the subsystem waits
    StreamSettings stream;
};

class SnitchCore final : public HartExtension {
  public:
    SnitchCore(Machine &machine, Hart &hart, const SnitchSettings &settings);

    void go_on(int64_t until) override;
    Outcome offload(const Op *op, uint32_t operand, int64_t &time) override;
    bool is_queueing() const override { return is_streaming() || !is_empty(); }
    Outcome before_access(uint32_t address) override;
    Outcome special(const Op *op, uint32_t first, uint32_t second, uint32_t &result, int64_t &time) override;
    Outcome before_csr(const Op *op, uint32_t number, int64_t &time) override;
    bool read_csr(uint32_t number, uint32_t &value) const override;
    bool write_csr(uint32_t number, uint32_t value, int64_t time) override;

    Idma *dma = nullptr;
    SnitchCluster *cluster = nullptr;
    uint64_t executed() const { return executed_ + repeated(); }
    uint64_t repeated() const { return repeated_ + (steps_ != 0 ? static_cast<uint64_t>(step_ - body_.data()) : 0); }

  private:
    // Registers that an instruction names, a byte each: rs1, rs2, the third (rs3, or rd where it is read) and rd.
    // Those that it does not wait for are `unread`.
    using Places = uint32_t;
    enum : uint32_t { first_place = 0, second_place = 8, third_place = 16, target_place = 24 };
    static constexpr uint32_t unread = 32;
    // The place of a register among the times from which registers can be written: streams have one of their own.
    uint32_t target_place_of(uint32_t number) const { return number + (is_stream(number) ? unread + 1 : 0); }

    // An instruction for the subsystem, or the setup of a loop over those behind it.
    enum class Kind : uint8_t { compute, load, store, loop };
    struct Entry {
        const Op *op = nullptr;
        const FloatRow *row = nullptr; // of one that computes
        int64_t from = 0;              // when it has come
        Places places = 0;
        uint32_t used = 0; // places that are registers, ones in their bytes
        uint32_t operand = 0;
        Kind kind = Kind::compute;
        uint8_t latency = 0;   // until its result can be used
        bool repeated = false; // was executed before
        bool usual = false;    // computes in the usual way, unless fcsr says otherwise
        bool inner = false;    // each instruction is repeated before the next
        uint8_t stagger_max = 0;
        uint32_t left = 0;       // instructions of its body that are still to come
        uint32_t iterations = 0; // less 1
        uint32_t stagger = 0;    // places whose registers go round, ones in their bytes
        uint64_t end = 0;        // number of the entry behind its body, once that is there
    };
    struct Loop {
        uint64_t setup = 0; // number of its entry
        uint32_t iteration = 0;
        uint32_t shift = 0; // of the registers that go round
    };

    // An instruction of a loop that was executed before, with all that is the same in each turn.
    enum class Way : uint8_t { call, multiply_add, multiply_add_singles, dot_products }; // how it is computed
    struct Step {
        std::array<Stream *, 3> streams{}; // that bring its operands; null: a register holds it
        // Registers, and where it stands when the target can be written.
        uint8_t first = unread, second = unread, third = unread, target = unread, target_place = unread;
        uint8_t latency = 0;
        Way way = Way::call;
        bool to_stream = false;
        FloatResult (*compute)(uint64_t, uint64_t, uint64_t, uint32_t) = nullptr;
    };

    Entry entry_of(const Op *op, uint32_t operand, int64_t from) const;
    // Issues an instruction that need not queue, and says when; false after a fault.
    bool issue(const Entry &entry, int64_t &at);
    // The registers of an instruction in this turn of its loop.
    Places places_of(const Entry &next) const;
    // The first cycle in which an instruction can be issued; `never` where a stream brings nothing.
    int64_t issue_time(const Entry &entry, Places places) const;
    // Executes it then; false after a fault.
    bool execute(const Entry &entry, Places places, int64_t time);
    bool execute_access(const Entry &entry, Places places, int64_t time);
    bool compute_unusual(const Entry &entry, FloatCall &call, FloatResult &result);
    bool refuse(const Op *op, const char *kind, const char *why);
    void tell_unboxed(const Op *op);
    // Whether rounding is to nearest-even.
    bool is_usual() const { return (hart_.fcsr & 7u << 5) == 0; }
    uint32_t flags() const { return hart_.fcsr & 31; }
    uint64_t operand_of(uint32_t number, int64_t time);
    uint64_t operand_of(Stream *stream, uint32_t number, int64_t time);
    void result_to(const Op *op, uint32_t number, uint64_t value, int64_t ready);
    bool is_streaming() const { return stream_registers_ != 0; }
    bool is_stream(uint32_t number) const { return number < stream_registers_; }
    void set_streaming(bool on);
    // Looks when a stream brings or takes its next element.
    void look_at_stream(uint32_t number);
    uint64_t take_from(Stream &stream, uint32_t number, int64_t time);
    // The queue is a ring, which holds more than the sequencer: setups of loops are in it, too.
    static constexpr uint64_t places = 128;
    const Entry &entry(uint64_t number) const { return queue_[number % places]; }
    Entry &entry(uint64_t number) { return queue_[number % places]; }
    bool is_empty() const { return first_ == behind_; }
    void add(const Entry &entry);
    void wake_self(int64_t time);
    // Goes on until `limit`, the last cycle in which nobody else does anything, and says when it goes on; `never` where
    // it waits for the hart. `Wide` is for hosts with the instructions that float_lanes.h names.
    template <bool Wide> int64_t take_turn(int64_t limit);
    template <bool Wide> int64_t go_through(int64_t limit);
    template <bool Wide> void take_turns(int64_t until);
    void take_turns_wide(int64_t until);
    // Goes to the next instruction in the queue; false where there is none yet.
    bool find_next();
    // Behind the instruction that was executed: on, or back to the start of its loop.
    void advance();
    void end_or_repeat();
    // Finds the steps of a loop that begins a further turn; none where they are not all usual ones.
    void find_steps(const Loop &loop);
    Step step_of(const Entry &entry) const;
    void find_sources(Step &step) const;
    // When a step can be issued, from a cycle on.
    int64_t step_time(const Step &step, int64_t from) const;
    int64_t sum_time(const Step &step, int64_t from) const;
    template <bool Wide> void execute(const Step &step, int64_t time);
    void put_in_stream(const Step &step, uint64_t value, int64_t ready);
    template <bool Wide>
    bool compute_at_once(const Step &step, uint64_t a, uint64_t b, uint64_t c, uint64_t &result) const;
    uint64_t compute_step(const Step &step, uint64_t a, uint64_t b, uint64_t c);
    static Way way_of(uint16_t code);
    // Whether all that it does in this cycle is a step, and that: `next` is when the one behind it comes; false where
    // the loop has ended.
    bool is_stepping() const { return sums_ || (steps_ != 0 && planned_); }
    template <bool Wide> bool take_step(int64_t now, int64_t &limit, int64_t &next);
    // The same for a sum; false where more has to be looked at to find the next one.
    template <bool Wide> bool take_sum(int64_t now, int64_t &next);
    // All of a cycle that may not be its last, and when the next one comes: a sum, mostly. What remains behind a sum, or
    // where there is none, is apart, so that the loop over units stays small.
    template <bool Wide> int64_t take_cycle(int64_t now);
    template <bool Wide> int64_t take_rest(int64_t now, bool summed);
    template <bool Wide> int64_t go_on_with_rest(int64_t now, bool summed);
    bool go_to_next_step(int64_t now, int64_t &limit, int64_t &next);
    // Whether each step adds a product of the same two streams to a register.
    bool are_sums() const;
    // From here on `ready_` tells of their streams again.
    void end_sums();
    // Goes on with these; false where there is nothing to do until `next`.
    template <bool Wide> bool repeat_steps(int64_t &limit, int64_t &next);
    bool begin_turn();
    void end_steps();
    const Op *op_of(const Step &step) const;
    // Goes on with other instructions; true where steps come next.
    bool go_through_queue(int64_t &limit, int64_t &next);
    void forget_done();
    static void count_turn(Loop &loop, const Entry &setup);
    // What the hart waits for: room in the queue, the end of all that is in it, or registers of a stream.
    enum class Wait : uint8_t { none, room, end, stream, access };
    Outcome wait(Wait reason);
    bool is_over(Wait reason) const;
    void end_wait(int64_t at, int64_t &limit);
    bool touches(uint32_t address) const;
    Outcome configure(uint32_t address, uint32_t value, const Op *op, int64_t &time);
    Outcome repeat(const Op *op, uint32_t iterations);

    Machine &machine_;
    Hart &hart_;
    uint64_t *const floats_ = hart_.f.data();
    bool scheduled_ = false;
    bool planned_ = false;  // the next instruction is
    bool are_sums_ = false; // the steps of this loop are
    bool sums_ = false;     // and these streams flow, so that `ready_` need not tell of them
    bool inexact_ = false;  // whether a step has nothing to add to the flags by rounding
    Wait waits_ = Wait::none;
    Places planned_places_ = 0;
    int64_t planned_at_ = 0;
    int64_t time_ = 0;                // of the next issue
    uint64_t first_ = 0, behind_ = 0; // numbers of the first entry of the queue, and of the next one to come
    uint64_t at_ = 0;                 // of the one that is next
    uint32_t steps_ = 0;              // of the loop that is executed step by step; 0: none is
    uint32_t turns_ = 0;              // of that loop behind this one
    const Step *step_ = nullptr;      // the next of them
    const Step *steps_end_ = nullptr; // behind the last
    Stream *sum_first_ = nullptr, *sum_second_ = nullptr; // of steps that are all sums
    uint32_t known_steps_ = 0;                            // of the loop whose setup is `known_setup_`
    uint64_t known_setup_ = ~uint64_t{0};
    std::array<Step, 32> body_{};
    const Entry *innermost_ = nullptr;     // the setup of the last of the loops that run
    uint64_t executed_ = 0, repeated_ = 0; // instructions; those beside that the sequencer repeated
    uint32_t held_ = 0;                    // instructions in the queue
    std::vector<std::unique_ptr<Stream>> streams_;
    uint32_t stream_registers_ = 0; // all while streams are on (CSR 0x7c0), or none
    uint64_t reading_ = 0;          // those from which streams are read, as bits
    uint32_t formats_ = 0;          // CSR 0x800
    bool unfenced_ = false;         // stores since the last result for an integer register
    // When each register can be read, also where it is a stream, and written; behind them, when each stream takes one.
    std::array<int64_t, 2 * unread + 1> ready_{};
    std::array<int64_t, unread> hidden_ready_{}; // of registers behind streams
    std::array<Entry, places> queue_{};          // what is to be executed, and bodies of loops until these end
    std::vector<Loop> running_;
    std::vector<uint64_t> collecting_; // loops whose bodies are not complete
    const SnitchSettings settings_;
    const Stream *awaited_ = nullptr;
    uint32_t awaited_address_ = 0;
};

std::unique_ptr<Device> make_snitch(const std::string &kind, Machine &machine, const std::string &name,
                                    const Settings &settings);

} // namespace tilewright
