// When everything of a network runs on a machine of many cores: list scheduling over cores, links and memories.
//
// Places are cores and, as the last one, the memory outside of the chip. Nodes are taken one by one; each has its
// operands brought to its core as early as links and memories allow, and starts when all are there. Sizes are in bits,
// times in cycles, energies in picojoules.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/usage.h"

namespace tilewright::schedule {

using Index = int32_t;

// Rows of different lengths, one behind the other.
struct Rows {
    std::vector<int64_t> starts; // of each row, and the end of the last one
    std::vector<Index> items;

    const Index *begin(size_t row) const { return items.data() + starts[row]; }
    const Index *end(size_t row) const { return items.data() + starts[row + 1]; }
};

struct Fabric {
    Index places = 0; // the last one is outside of the chip
    Index slots = 0;
    std::vector<Index> memory_of; // by place and slot; -1 where a place holds no such operand
    std::vector<Index> site;      // by place: the first of those that share their memories with it

    std::vector<int64_t> capacity; // by memory, all in bits
    std::vector<int64_t> read_word, write_word;
    std::vector<double> read_energy, write_energy; // of a word

    std::vector<double> bandwidth;   // by link, bits per cycle, may be infinite
    std::vector<double> link_energy; // of a bit
    std::vector<uint8_t> multicast;  // by link: whether all that want what crosses it take it at once
    Rows routes;                     // by source and target place: links in their order; none where there is no way
};

struct Work {
    std::vector<Index> group; // by node: what is allocated as one
    std::vector<Index> kind;  // by node: the row of costs
    Rows before;              // by node: nodes that end before it starts
    Rows reads;               // by node: operands, in the order in which they are brought
    std::vector<Index> read_tensor, read_slot;
    Rows writes; // by node
    std::vector<Index> write_tensor, write_slot;
    std::vector<int64_t> rank;   // by node: the lowest goes first
    std::vector<int64_t> bits;   // by tensor
    std::vector<uint8_t> result; // by tensor: whether it leaves the chip
    // By kind and core:
    std::vector<int64_t> cycles; // -1 where it cannot run there
    std::vector<double> energy, far_energy;
    std::vector<uint32_t> streamed; // a bit for each slot whose operand is streamed from outside while the node runs
};

struct Rules {
    bool by_time = true; // of nodes that are ready, first the one that was ready first, or the one of lowest rank
    // As Stream of April 2023 counts: receivers write words as wide as those that the sender reads, and memories forget
    // some of what leaves them (Usage::forget).
    bool as_stream = false;
};

enum class Cause : uint8_t { fetch, pass, evict, result };
constexpr size_t causes = 4;

struct Transfer {
    Index tensor, source, target, node;
    Cause cause;
    Index carrier; // the transfer that brings it: itself, or the one to another place that goes the same way
    int64_t start, end;
};

struct Busy { // of a link; a node that streams operands has no transfer
    Index link, transfer, node;
    int64_t start, end;
};

struct Stored { // a change of what a memory holds
    Index memory, tensor;
    int64_t time, bits;
};

enum class Failure : uint8_t { none, cost, route, room, cycle };

struct Outcome {
    Failure failure = Failure::none;
    Index node = -1, tensor = -1, place = -1, other = -1;

    int64_t latency = 0;
    double compute_energy = 0, far_energy = 0;
    double link_energy[causes] = {}, memory_energy[causes] = {};
    std::vector<int64_t> peaks;      // by memory
    std::vector<int64_t> start, end; // by node
    // Only where a trace was asked for:
    std::vector<Transfer> transfers;
    std::vector<Busy> busy;
    std::vector<Stored> stored;
};

// What is to be scheduled. Schedulers of several threads share it.
struct Problem {
    Problem(Fabric fabric, Work work, Rules rules);

    const Fabric fabric;
    const Work work;
    const Rules rules;
    const Rows after;              // by node: those that wait for it
    std::vector<uint8_t> produced; // by tensor: whether a node writes it
};

class Scheduler {
  public:
    explicit Scheduler(std::shared_ptr<const Problem> problem);

    // Another one of the same problem, for another thread.
    Scheduler fresh() const { return Scheduler(problem_); }
    // The place of each group decides; with a trace, all that happens is in the outcome.
    Outcome run(const Index *places, bool trace);
    // Bits that memories on the chip hold at most, all together.
    int64_t peak(const Outcome &outcome) const;

  private:
    struct Stay { // a tensor at a place, or nodes there that will want it
        Index place, memory, next;
        Index pending;        // nodes there that have not run
        int64_t since, until; // there from, and in use until
        size_t at;            // among those of its memory
    };
    struct Candidate {
        int64_t ready, rank;
        Index node;
    };

    void prepare(const Index *places);
    bool crowded(Index node);
    bool schedule(Index node);
    bool bring(Index tensor, Index slot, Index place, Index node, int64_t &time);
    bool make_room(Index memory, Index tensor, int64_t bits, Index place, Index node, int64_t wish, int64_t &time,
                   int64_t &room);
    bool evict(Index tensor, Index place, Index node, int64_t time, int64_t &done);
    int64_t carry(Index tensor, Index source, Index target, Index from, Index to, int64_t start, Cause cause,
                  Index node);
    void spread(Index tensor, Index slot, Index source, Index target, Index from, int64_t start, int64_t end,
                Cause cause, Index node);
    bool passes(Index source, Index target, Index by) const;
    int64_t first_free(Index source, Index target) const;
    bool linked(Index source, Index target) const;
    bool fail(Failure failure, Index node, Index tensor, Index place, Index other = -1);
    bool needs(Index node, Index tensor) const;

    Stay *find(Index tensor, Index place);
    Stay &reach(Index tensor, Index place);
    void store(Index tensor, Stay &stay, Index memory, int64_t from, int64_t since);
    void drop(Index tensor, Stay &stay, int64_t time);

    Index far() const { return fabric_.places - 1; }
    Index memory_at(Index place, Index slot) const { return fabric_.memory_of[index(place * fabric_.slots + slot)]; }
    static size_t index(Index value) { return static_cast<size_t>(value); }

    const std::shared_ptr<const Problem> problem_;
    const Fabric &fabric_;
    const Work &work_;
    const Rules &rules_;
    const Rows &after_;
    const std::vector<uint8_t> &produced_;

    // Of a run:
    Outcome out_;
    bool trace_ = false;
    bool left_ = false;           // whether a tensor left a memory
    std::vector<Index> place_of_; // by node: the core
    std::vector<Index> site_of_;  // by node: where its operands are
    std::vector<Index> missing_;  // by node: nodes before it that have not run
    std::vector<int64_t> ready_;
    std::vector<Index> stays_of_; // by tensor: the first
    std::vector<Stay> stays_;
    std::vector<Index> pending_;               // by tensor, at all places
    std::vector<std::vector<Index>> contents_; // by memory: tensors
    std::vector<Usage> usage_;
    std::vector<int64_t> idle_;      // by place: the core has nothing to do from then on
    std::vector<int64_t> link_free_; // by link
};

} // namespace tilewright::schedule
