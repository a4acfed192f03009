// Where harts were: instructions, and the calls that led there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace tilewright {

struct Place {
    uint32_t hart = 0;
    uint32_t pc = 0;
    uint32_t frame = 0; // see Places::called
};

class Places {
  public:
    // The number of a function's activation that an instruction of another one called; 0 is where a hart starts.
    uint32_t called(uint32_t frame, uint32_t pc) {
        const auto [found, added] = children_.try_emplace({frame, pc}, static_cast<uint32_t>(frames_.size()));
        if (added)
            frames_.push_back({frame, pc});
        return found->second;
    }
    uint32_t caller(uint32_t frame) const { return frames_[frame].parent; }

    // A place as a number, from 1 on.
    uint32_t number(const Place &place) {
        Recent &recent = recent_[(place.pc / 2 + place.hart * 64) % recent_.size()];
        if (recent.number == 0 || recent.place.pc != place.pc || recent.place.hart != place.hart ||
            recent.place.frame != place.frame) {
            const auto [found, added] =
                numbers_.try_emplace({place.hart, place.pc, place.frame}, static_cast<uint32_t>(places_.size()));
            if (added)
                places_.push_back(place);
            recent = {place, found->second};
        }
        return recent.number;
    }
    const Place &operator[](uint32_t number) const { return places_[number]; }

    // The calls that led to a place, the last one first.
    std::vector<uint32_t> stack(uint32_t frame) const {
        constexpr size_t deepest = 16;
        std::vector<uint32_t> calls;
        for (; frame != 0 && calls.size() < deepest; frame = frames_[frame].parent)
            calls.push_back(frames_[frame].pc);
        return calls;
    }

  private:
    struct Frame {
        uint32_t parent = 0;
        uint32_t pc = 0; // of the call
    };
    struct Recent {
        Place place;
        uint32_t number = 0;
    };

    std::vector<Frame> frames_{1};
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> children_;
    std::vector<Place> places_{1};
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> numbers_;
    std::array<Recent, 1024> recent_{};
};

} // namespace tilewright
