// How tensors go from place to place: over links, and to all places on their way that will read them.
#include "schedule/scheduler.h"

#include <algorithm>
#include <cmath>

namespace tilewright::schedule {

namespace {

int64_t words(int64_t bits, int64_t word) { return (bits + word - 1) / word; }

} // namespace

// Sends a tensor over all links of its way and says when it is there.
int64_t Scheduler::carry(Index tensor, Index source, Index target, Index from, Index to, int64_t start, Cause cause,
                         Index node) {
    const int64_t bits = work_.bits[index(tensor)];
    const size_t route = index(source * fabric_.places + target), why = static_cast<size_t>(cause);
    int64_t end = start;
    for (const Index *link = fabric_.routes.begin(route); link != fabric_.routes.end(route); ++link) {
        const double bandwidth = fabric_.bandwidth[index(*link)];
        const auto cycles = static_cast<int64_t>(std::ceil(static_cast<double>(bits) / bandwidth));
        const int64_t begin = std::max(start, link_free_[index(*link)]);
        if (cycles > 0 || rules_.as_stream) // what takes no time keeps nothing waiting
            link_free_[index(*link)] = begin + cycles;
        end = std::max(end, begin + cycles);
        out_.link_energy[why] += static_cast<double>(bits) * fabric_.link_energy[index(*link)];
        if (trace_)
            out_.busy.push_back({*link, static_cast<Index>(out_.transfers.size()), node, begin, begin + cycles});
    }
    const int64_t width = rules_.as_stream ? fabric_.write_word[index(from)] : fabric_.write_word[index(to)];
    out_.memory_energy[why] +=
        static_cast<double>(words(bits, fabric_.read_word[index(from)])) * fabric_.read_energy[index(from)] +
        static_cast<double>(words(bits, width)) * fabric_.write_energy[index(to)];
    Stay *stay = find(tensor, source);
    stay->until = std::max(stay->until, end);
    if (trace_) {
        const auto number = static_cast<Index>(out_.transfers.size());
        out_.transfers.push_back({tensor, source, target, node, cause, number, start, end});
    }
    return end;
}

// Places that will read a tensor, and that it passes on its way to another one, take it as well if they have room.
void Scheduler::spread(Index tensor, Index slot, Index source, Index target, Index from, int64_t start, int64_t end,
                       Cause cause, Index node) {
    const int64_t bits = work_.bits[index(tensor)];
    const auto carrier = static_cast<Index>(out_.transfers.size()) - 1;
    for (Index at = stays_of_[index(tensor)]; at >= 0; at = stays_[index(at)].next) {
        Stay &stay = stays_[index(at)];
        const Index memory = memory_at(stay.place, slot);
        if (stay.memory >= 0 || stay.pending == 0 || memory < 0 || !passes(source, target, stay.place) ||
            usage_[index(memory)].room(start, bits, fabric_.capacity[index(memory)]) != start)
            continue;
        out_.memory_energy[static_cast<size_t>(cause)] +=
            static_cast<double>(words(bits, fabric_.write_word[index(rules_.as_stream ? from : memory)])) *
            fabric_.write_energy[index(memory)];
        store(tensor, stay, memory, start, end);
        if (trace_)
            out_.transfers.push_back({tensor, source, stay.place, node, cause, carrier, start, end});
    }
}

// Whether what goes from a source to a target goes by another place, on channels that may hand it to both.
bool Scheduler::passes(Index source, Index target, Index by) const {
    const size_t whole = index(source * fabric_.places + target), part = index(source * fabric_.places + by);
    const Index *begin = fabric_.routes.begin(whole), *end = fabric_.routes.end(whole);
    const Index *link = fabric_.routes.begin(part), *last = fabric_.routes.end(part);
    if (link == last)
        return false;
    return std::all_of(link, last,
                       [&](Index one) { return fabric_.multicast[index(one)] && std::find(begin, end, one) != end; });
}

int64_t Scheduler::first_free(Index source, Index target) const {
    return link_free_[index(*fabric_.routes.begin(index(source * fabric_.places + target)))];
}

bool Scheduler::linked(Index source, Index target) const {
    const size_t route = index(source * fabric_.places + target);
    return fabric_.routes.begin(route) != fabric_.routes.end(route);
}

} // namespace tilewright::schedule
