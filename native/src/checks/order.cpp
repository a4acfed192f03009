#include "checks/order.h"

namespace tilewright {

Epoch Readers::with(Epoch readers, Epoch epoch, const Clock &clock) {
    if (readers == no_epoch || readers == epoch)
        return epoch;
    if ((readers & several) == 0 && knows(clock, readers))
        return epoch;
    Step &step = steps_[(readers * 31 + epoch + (epoch >> clock_bits) * 521) % steps_.size()];
    if (step.from == readers && step.added == epoch)
        return step.to;
    std::vector<Epoch> set;
    for (const Epoch each : (readers & several) != 0 ? sets_[readers & ~several] : std::vector<Epoch>{readers})
        if (!knows(clock, each) && thread_of(each) != thread_of(epoch))
            set.push_back(each);
    set.insert(std::ranges::lower_bound(set, epoch), epoch);
    Epoch result = epoch;
    if (set.size() > 1) {
        const auto [found, added] = numbers_.try_emplace(set, static_cast<uint32_t>(sets_.size()));
        if (added && !free_.empty()) {
            found->second = free_.back();
            free_.pop_back();
            sets_[found->second] = std::move(set);
        } else if (added) {
            sets_.push_back(std::move(set));
        }
        result = several | found->second;
    }
    step = {readers, epoch, result};
    return result;
}

Epoch Readers::unknown(Epoch readers, const Clock &clock, Epoch own, uint32_t preferred) const {
    if ((readers & several) == 0)
        return readers == own || knows(clock, readers) ? no_epoch : readers;
    Epoch found = no_epoch;
    for (const Epoch each : sets_[readers & ~several])
        if (each != own && !knows(clock, each) && (found == no_epoch || thread_of(each) == preferred))
            found = each;
    return found;
}

void Readers::keep(const std::vector<bool> &used) {
    std::erase_if(numbers_, [&](const auto &entry) { return !used[entry.second]; });
    free_.clear();
    for (uint32_t number = 0; number < sets_.size(); ++number)
        if (!used[number])
            free_.push_back(number);
    most_ = sets_.size() - free_.size() + least_room;
    std::ranges::fill(steps_, Step{});
}

} // namespace tilewright
