// A MCHAN DMA: commands from queues of cores, cut into bursts, moved between a near memory and all others, both ways
// at once.
#pragma once

#include "machine/device.h"
#include "machine/schedule.h"

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace tilewright {

struct Memory;

// Settings: memory (the near one), address_bits (of addresses in it, the others are dropped), events (the event unit),
// event, interrupt_event (lines), counters, core_queue, queue, burst, outstanding, bank_conflicts (whether it takes
// banks of the near memory), read_cycles (from asking for a burst outside to its first word; default 0), near_lines
// (whether commands may have lines in the near memory; default 1).
//
// Every part acts at most once a cycle, after the harts: the queue moves one command, each direction starts one burst,
// and two ports for each direction move a word each. Cycles in which only words in the middle of bursts move are not
// simulated one by one: `credited_` says up to which cycle all words are counted.
class Mchan final : public Device {
  public:
    Mchan(Machine &machine, const std::string &name, const Settings &settings);
    Reply access(const Access &access) override;
    void happen(uint32_t tag) override;
    std::map<std::string, uint64_t> statistics() const override;

  private:
    static constexpr uint32_t word_bytes = 4;
    static constexpr uint32_t ports_per_direction = 2;

    // Lines of `length` bytes, `stride` apart; a length of 0 means one line.
    struct Lines {
        uint32_t length = 0;
        uint32_t stride = 0;
        uint32_t offset_of(uint32_t byte) const { return length == 0 ? byte : byte / length * stride + byte % length; }
    };
    struct Command {
        uint32_t length = 0;
        uint32_t near = 0; // offset in the near memory
        uint32_t far = 0;  // address
        Lines near_lines, far_lines;
        bool inward = false; // from outside to the near memory
        bool event = false;
        bool interrupt = false;
        uint32_t counter = 0;
        uint32_t transfer = 0;
        uint32_t moved = 0; // bytes that bursts were made for
    };
    struct Burst {
        uint32_t near;
        uint32_t far;
        uint32_t size;
        uint32_t done;
        int64_t from; // first cycle in which its words can move
        bool last;    // of its command
        bool event;
        bool interrupt;
        uint32_t counter;
        uint32_t transfer;
    };
    // One way through the DMA.
    struct Direction {
        std::deque<Command> queue;
        std::optional<Command> current;
        std::deque<Burst> bursts;
        int64_t burst_at = never; // when the next burst is made
        uint64_t bytes = 0;
        uint64_t transfers = 0;
        uint64_t busy = 0;
        int64_t busy_from = never;
    };
    // Commands of one hart, and the words of the one that is being written.
    struct Port {
        std::vector<uint32_t> words;
        std::deque<Command> queue;
        uint32_t counter = 0;
        std::optional<uint32_t> blocked; // a word that waits for room in the queue
    };

    Reply allocate(const Access &access);
    uint32_t status(const Hart &hart);
    void release(uint32_t counters, const Access &access);
    Reply write_word(const Access &access);
    void add_word(uint32_t hart, uint32_t word, uint32_t pc, int64_t time);
    bool describe(Command &command, uint32_t hart, uint32_t pc, int64_t time);

    void step(int64_t time);
    void move_command(int64_t time);
    bool move_command(Direction &direction, bool inward, int64_t time);
    void start_burst(Direction &direction, int64_t time);
    Burst next_burst(Command &command, int64_t time) const;
    void move_words(int64_t time);
    void move_word(Direction &direction, uint32_t port, int64_t time);
    void finish_burst(Direction &direction, int64_t time);
    void copy(const Burst &burst, bool inward);
    // Looks which parts have something to do in the next cycle.
    void look_ahead(int64_t time);
    void credit(int64_t until);
    int64_t end_of_burst(const Direction &direction, int64_t from) const;
    void plan(int64_t time);

    Memory &near_;
    uint32_t address_mask_;
    Device &events_;
    uint32_t event_line_, interrupt_line_;
    size_t core_queue_, queue_;
    uint32_t burst_, outstanding_;
    bool bank_conflicts_;
    int64_t read_cycles_;
    bool near_lines_;

    std::vector<Port> ports_; // by hart
    uint32_t turn_ = 0;       // the hart whose queue is looked at first
    Direction in_, out_;
    std::vector<uint32_t> pending_;               // bytes, by counter
    std::vector<uint32_t> threads_;               // by counter, see Checks::add_thread
    uint32_t free_;                               // counters, as bits
    std::deque<uint32_t> waiting_;                // harts that wait for a counter
    std::array<int64_t, 4> port_free_{};          // first cycle in which each port can move a word again
    int64_t queue_at_ = never, words_at_ = never; // when commands and words move next
    int64_t credited_ = 0;                        // words up to this cycle are counted
    uint32_t generation_ = 0;                     // scheduled events of earlier ones no longer hold
};

} // namespace tilewright
