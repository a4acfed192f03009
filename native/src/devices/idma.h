// The DMA of a Snitch cluster (iDMA), which its core programs with instructions: transfers of one or two dimensions, in
// order, with ids.
#pragma once

#include "machine/machine.h"

#include <deque>

namespace tilewright {

class Idma final : public Device {
  public:
    Idma(Machine &machine, const std::string &name, const Settings &settings);
    Reply access(const Access &) override { return {.refused = true}; }
    void happen(uint32_t tag) override;
    std::map<std::string, uint64_t> statistics() const override;

    Outcome execute(Hart &hart, const Op *op, uint32_t first, uint32_t second, uint32_t &result, int64_t &time);

  private:
    struct Copy {
        uint64_t source = 0, target = 0;
        uint64_t source_stride = 0, target_stride = 0;
        uint32_t bytes = 0, rows = 1;
        uint32_t row = 0, moved = 0; // what is done: rows, and bytes of the next one
        int64_t asked = 0;
        uint64_t far_bytes = 0; // bytes that the far memory has been asked for
        uint32_t bursts = 0;
        uint32_t transfer = 0; // for checks
    };
    struct Burst {
        uint32_t source, target, size;
        int64_t end; // when its last bytes are there
        int64_t beats;
    };

    Outcome copy(Hart &hart, const Op *op, uint32_t bytes, bool two_dimensional, uint32_t &result, int64_t time);
    uint32_t status(const Hart &hart, uint32_t selector);
    bool describe(Copy &copy, Hart &hart, const Op *op, int64_t time);
    // The next burst of the first copy, and when it moves.
    void plan(int64_t time);
    void move();
    bool is_near(uint64_t address) const { return address - near_.base < near_.size; }

    Memory &near_;
    uint32_t queue_, burst_, outstanding_;
    int64_t setup_, read_latency_, write_latency_;
    int64_t far_rate_, far_lead_, far_again_;
    uint32_t far_ahead_;
    bool near_side_;
    bool bank_conflicts_;
    uint32_t thread_;

    Copy next_; // as it is programmed
    std::deque<Copy> copies_;
    Burst burst_now_{};
    std::deque<int64_t> in_flight_; // ends of the last bursts
    int64_t issued_ = 0, moved_until_ = 0;
    uint32_t begun_ids_ = 1, completed_ids_ = 0;
    std::deque<uint32_t> ending_; // transfers whose last bytes are still to come
    uint32_t last_transfer_ = 0;
    std::vector<Hart *> waiting_;
    uint64_t transfers_ = 0, bytes_in_ = 0, bytes_out_ = 0, busy_ = 0;
    int64_t busy_from_ = -1;
};

} // namespace tilewright
