// How full a memory is over time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace tilewright::schedule {

constexpr int64_t never = std::numeric_limits<int64_t>::max();

// Changes in the order of time, in blocks that know their sum and highest point: a change costs one block, and a look at
// all of the future costs a step for each block.
class Usage {
  public:
    void clear() {
        blocks_.clear();
        total_ = 0;
    }

    // From `time` on there are so many bits more, or fewer.
    void change(int64_t time, int64_t bits) {
        if (bits == 0)
            return;
        total_ += bits;
        if (blocks_.empty())
            blocks_.emplace_back();
        size_t index = blocks_.size() - 1;
        while (index > 0 && blocks_[index].changes.front().time > time)
            --index;
        Block &block = blocks_[index];
        const auto later = [](int64_t at, const Change &change) { return at < change.time; };
        const auto behind = std::upper_bound(block.changes.begin(), block.changes.end(), time, later);
        if (behind != block.changes.begin() && std::prev(behind)->time == time)
            std::prev(behind)->bits += bits;
        else
            block.changes.insert(behind, {time, bits});
        block.measure();
        if (block.changes.size() > most)
            split(index);
    }

    // What Stream does of April 2023 where a tensor leaves before the last change: the next change comes earlier instead.
    void forget(int64_t time, int64_t bits) {
        for (size_t index = 0; index < blocks_.size(); ++index) {
            for (Change &next : blocks_[index].changes) {
                if (next.time <= time)
                    continue;
                const int64_t moved = next.bits;
                next.bits = 0;
                blocks_[index].measure();
                total_ -= moved;
                return change(time, moved);
            }
        }
        change(time, -bits);
    }

    // The first moment, not before `time`, from which on so many bits more fit for good.
    int64_t room(int64_t time, int64_t bits, int64_t capacity) const {
        int64_t after = total_, next = never;
        if (after + bits > capacity)
            return never;
        for (size_t index = blocks_.size(); index-- > 0;) {
            const Block &block = blocks_[index];
            const int64_t before = after - block.sum;
            if (before + block.highest + bits > capacity) {
                for (size_t at = block.changes.size(); at-- > 0;) {
                    if (next <= time)
                        return time;
                    if (after + bits > capacity)
                        return next;
                    after -= block.changes[at].bits;
                    next = block.changes[at].time;
                }
            }
            after = before;
            next = block.changes.front().time;
            if (next <= time)
                return time;
        }
        return time;
    }

    int64_t peak() const {
        int64_t now = 0, most_bits = 0;
        for (const Block &block : blocks_) {
            most_bits = std::max(most_bits, now + block.highest);
            now += block.sum;
        }
        return most_bits;
    }

    int64_t at_the_end() const { return total_; }

  private:
    struct Change {
        int64_t time, bits;
    };
    struct Block {
        std::vector<Change> changes;
        int64_t sum = 0;
        int64_t highest = 0;

        void measure() {
            sum = 0;
            highest = std::numeric_limits<int64_t>::min();
            for (const Change &change : changes) {
                sum += change.bits;
                highest = std::max(highest, sum);
            }
        }
    };
    static constexpr size_t most = 128;

    void split(size_t index) {
        Block second;
        std::vector<Change> &first = blocks_[index].changes;
        const auto middle = first.begin() + static_cast<std::ptrdiff_t>(first.size() / 2);
        second.changes.assign(middle, first.end());
        first.erase(middle, first.end());
        blocks_[index].measure();
        second.measure();
        blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(index) + 1, std::move(second));
    }

    std::vector<Block> blocks_;
    int64_t total_ = 0;
};

} // namespace tilewright::schedule
