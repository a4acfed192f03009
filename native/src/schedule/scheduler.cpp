#include "schedule/scheduler.h"

#include <queue>
#include <tuple>

namespace tilewright::schedule {

namespace {

Rows turned(const Rows &before, size_t nodes) {
    Rows after;
    after.starts.assign(nodes + 1, 0);
    for (const Index node : before.items)
        ++after.starts[static_cast<size_t>(node) + 1];
    for (size_t node = 0; node < nodes; ++node)
        after.starts[node + 1] += after.starts[node];
    after.items.resize(before.items.size());
    std::vector<int64_t> at(after.starts.begin(), after.starts.end() - 1);
    for (size_t node = 0; node < nodes; ++node)
        for (const Index *item = before.begin(node); item != before.end(node); ++item)
            after.items[static_cast<size_t>(at[static_cast<size_t>(*item)]++)] = static_cast<Index>(node);
    return after;
}

} // namespace

Problem::Problem(Fabric given, Work nodes, Rules how)
    : fabric(std::move(given)), work(std::move(nodes)), rules(how), after(turned(work.before, work.group.size())),
      produced(work.bits.size(), 0) {
    for (const Index tensor : work.write_tensor)
        produced[static_cast<size_t>(tensor)] = 1;
}

Scheduler::Scheduler(std::shared_ptr<const Problem> problem)
    : problem_(std::move(problem)), fabric_(problem_->fabric), work_(problem_->work), rules_(problem_->rules),
      after_(problem_->after), produced_(problem_->produced) {}

int64_t Scheduler::peak(const Outcome &outcome) const {
    int64_t bits = 0;
    for (size_t memory = 0; memory < outcome.peaks.size(); ++memory) {
        const auto outside = fabric_.memory_of.begin() + far() * fabric_.slots;
        if (std::find(outside, fabric_.memory_of.end(), static_cast<Index>(memory)) == fabric_.memory_of.end())
            bits += outcome.peaks[memory];
    }
    return bits;
}

Outcome Scheduler::run(const Index *places, bool trace) {
    const size_t nodes = work_.group.size();
    trace_ = trace;
    prepare(places);
    const auto later = [](const Candidate &one, const Candidate &other) {
        return one.ready != other.ready ? one.ready > other.ready : one.rank > other.rank;
    };
    std::priority_queue<Candidate, std::vector<Candidate>, decltype(later)> ready(later);
    const auto offer = [&](size_t node) {
        ready.push({rules_.by_time ? ready_[node] : 0, work_.rank[node], static_cast<Index>(node)});
    };
    for (size_t node = 0; node < nodes; ++node)
        if (missing_[node] == 0)
            offer(node);
    // Nodes that would push others' operands out wait until something leaves, or until nothing else can run.
    std::vector<std::vector<Index>> waiting(index(fabric_.places));
    size_t done = 0, patient = 0;
    bool forced = false;
    while (!ready.empty() || patient > 0) {
        if (ready.empty()) {
            for (std::vector<Index> &nodes_there : waiting) {
                for (const Index node : nodes_there)
                    offer(index(node));
                nodes_there.clear();
            }
            patient = 0;
            forced = true;
        }
        const Index node = ready.top().node;
        std::vector<Index> &beside = waiting[index(site_of_[index(node)])];
        ready.pop();
        if (!rules_.as_stream && !forced && crowded(node)) {
            beside.push_back(node);
            ++patient;
            continue;
        }
        forced = false;
        left_ = false;
        if (!schedule(node))
            return std::move(out_);
        ++done;
        if (left_) {
            for (const Index other : beside)
                offer(index(other));
            patient -= beside.size();
            beside.clear();
        }
        for (const Index *next = after_.begin(index(node)); next != after_.end(index(node)); ++next) {
            int64_t &time = ready_[index(*next)];
            time = std::max(time, out_.end[index(node)]);
            if (--missing_[index(*next)] == 0)
                offer(index(*next));
        }
    }
    if (done < nodes) {
        size_t node = 0;
        while (missing_[node] == 0)
            ++node;
        fail(Failure::cycle, static_cast<Index>(node), -1, -1);
        return std::move(out_);
    }
    for (const int64_t free : link_free_)
        out_.latency = std::max(out_.latency, free);
    for (const Usage &usage : usage_)
        out_.peaks.push_back(usage.peak());
    return std::move(out_);
}

void Scheduler::prepare(const Index *places) {
    const size_t nodes = work_.group.size(), tensors = work_.bits.size(), memories = fabric_.capacity.size();
    out_ = Outcome();
    out_.start.assign(nodes, -1);
    out_.end.assign(nodes, -1);
    place_of_.resize(nodes);
    site_of_.resize(nodes);
    missing_.resize(nodes);
    ready_.assign(nodes, 0);
    stays_of_.assign(tensors, -1);
    stays_.clear();
    pending_.assign(tensors, 0);
    contents_.resize(memories);
    usage_.resize(memories);
    for (size_t memory = 0; memory < memories; ++memory) {
        contents_[memory].clear();
        usage_[memory].clear();
    }
    idle_.assign(index(fabric_.places), 0);
    link_free_.assign(fabric_.bandwidth.size(), 0);
    for (size_t node = 0; node < nodes; ++node) {
        place_of_[node] = places[index(work_.group[node])];
        site_of_[node] = fabric_.site[index(place_of_[node])];
        missing_[node] = static_cast<Index>(work_.before.starts[node + 1] - work_.before.starts[node]);
        for (const Index *read = work_.reads.begin(node); read != work_.reads.end(node); ++read) {
            const Index tensor = work_.read_tensor[index(*read)];
            if (!produced_[index(tensor)] && pending_[index(tensor)] == 0)
                store(tensor, reach(tensor, far()), memory_at(far(), work_.read_slot[index(*read)]), 0, 0);
            ++pending_[index(tensor)];
            ++reach(tensor, site_of_[node]).pending;
        }
    }
}

// Whether a node finds no room beside what is there for others.
bool Scheduler::crowded(Index node) {
    const size_t here = index(node);
    const Index place = site_of_[here];
    const size_t cost = index(work_.kind[here] * fabric_.places + place_of_[here]);
    const uint32_t streamed = work_.streamed[cost];
    const auto more = [&](Index memory) {
        int64_t bits = 0;
        for (const Index *read = work_.reads.begin(here); read != work_.reads.end(here); ++read) {
            const Index tensor = work_.read_tensor[index(*read)], other = work_.read_slot[index(*read)];
            const Stay *stay = find(tensor, place);
            if (memory_at(place, other) == memory && !(streamed >> other & 1) && (stay == nullptr || stay->memory < 0))
                bits += work_.bits[index(tensor)];
        }
        for (const Index *write = work_.writes.begin(here); write != work_.writes.end(here); ++write)
            if (const Index other = work_.write_slot[index(*write)];
                memory_at(place, other) == memory && !(streamed >> other & 1))
                bits += work_.bits[index(work_.write_tensor[index(*write)])];
        return bits;
    };
    for (Index slot = 0; slot < fabric_.slots; ++slot) {
        const Index memory = memory_at(place, slot);
        if (memory >= 0 && usage_[index(memory)].at_the_end() + more(memory) > fabric_.capacity[index(memory)])
            return true;
    }
    return false;
}

bool Scheduler::schedule(Index node) {
    const size_t here = index(node);
    const Index core = place_of_[here], place = site_of_[here];
    const size_t cost = index(work_.kind[here] * fabric_.places + core);
    const int64_t cycles = work_.cycles[cost];
    if (cycles < 0)
        return fail(Failure::cost, node, -1, core);
    const uint32_t streamed = work_.streamed[cost];
    int64_t time = std::max(idle_[index(core)], ready_[here]);

    // What an operand that is streamed passes through is its alone.
    for (Index slot = 0; slot < fabric_.slots; ++slot) {
        const Index memory = streamed >> slot & 1 ? memory_at(place, slot) : -1;
        if (memory < 0)
            continue;
        const std::vector<Index> contents = contents_[index(memory)];
        int64_t done = time;
        for (const Index tensor : contents)
            if (!needs(node, tensor) && !evict(tensor, place, node, time, done))
                return false;
        time = std::max(time, done);
    }
    const auto reads_begin = work_.reads.begin(here), reads_end = work_.reads.end(here);
    for (const Index *read = reads_begin; read != reads_end; ++read) {
        const Index tensor = work_.read_tensor[index(*read)], slot = work_.read_slot[index(*read)];
        const bool far_away = streamed >> slot & 1;
        const Stay *stay = find(tensor, place);
        if (stay != nullptr && stay->memory >= 0) {
            time = std::max(time, stay->since);
            continue;
        }
        if (!bring(tensor, slot, far_away ? far() : place, node, time))
            return false;
    }
    for (const Index *write = work_.writes.begin(here); write != work_.writes.end(here); ++write) {
        const Index tensor = work_.write_tensor[index(*write)], slot = work_.write_slot[index(*write)];
        const Index to = streamed >> slot & 1 ? far() : place;
        const Index memory = memory_at(to, slot);
        int64_t room = 0, bits = 0;
        if (memory < 0)
            return fail(Failure::room, node, tensor, to);
        // All results of the node are there at once.
        for (const Index *other = work_.writes.begin(here); other <= write; ++other) {
            const Index with = work_.write_slot[index(*other)];
            if (memory_at(streamed >> with & 1 ? far() : place, with) == memory)
                bits += work_.bits[index(work_.write_tensor[index(*other)])];
        }
        if (!make_room(memory, tensor, bits, to, node, time, time, room))
            return false;
        time = std::max(time, room);
    }
    if (streamed != 0) {
        uint32_t written = 0;
        for (const Index *write = work_.writes.begin(here); write != work_.writes.end(here); ++write)
            written |= uint32_t{1} << work_.write_slot[index(*write)];
        const bool out = (streamed & written) != 0, in = (streamed & ~written) != 0;
        std::vector<Index> links;
        for (const auto &[wanted, from, to] : {std::tuple{in, far(), place}, std::tuple{out, place, far()}}) {
            if (!wanted)
                continue;
            if (!linked(from, to))
                return fail(Failure::route, node, -1, from, to);
            const size_t route = index(from * fabric_.places + to);
            for (const Index *link = fabric_.routes.begin(route); link != fabric_.routes.end(route); ++link)
                if (std::find(links.begin(), links.end(), *link) == links.end()) // a bus goes both ways
                    links.push_back(*link);
        }
        for (const Index link : links)
            time = std::max(time, link_free_[index(link)]);
        for (const Index link : links) {
            link_free_[index(link)] = time + cycles;
            if (trace_)
                out_.busy.push_back({link, -1, node, time, time + cycles});
        }
    }
    const int64_t end = time + cycles;
    out_.start[here] = time;
    out_.end[here] = end;
    out_.latency = std::max(out_.latency, end);
    out_.compute_energy += work_.energy[cost];
    out_.far_energy += work_.far_energy[cost];
    idle_[index(core)] = end;
    for (const Index *write = work_.writes.begin(here); write != work_.writes.end(here); ++write) {
        const Index tensor = work_.write_tensor[index(*write)], slot = work_.write_slot[index(*write)];
        const Index to = streamed >> slot & 1 ? far() : place;
        store(tensor, reach(tensor, to), memory_at(to, slot), time, end);
    }
    for (const Index *read = reads_begin; read != reads_end; ++read) {
        const Index tensor = work_.read_tensor[index(*read)], slot = work_.read_slot[index(*read)];
        --find(tensor, place)->pending;
        Stay *stay = find(tensor, place);
        if (stay->memory < 0 && (streamed >> slot & 1))
            stay = find(tensor, far());
        stay->until = std::max(stay->until, end);
        if (--pending_[index(tensor)] > 0)
            continue;
        for (Index at = stays_of_[index(tensor)]; at >= 0; at = stays_[index(at)].next)
            if (stays_[index(at)].memory >= 0 && !(work_.result[index(tensor)] && stays_[index(at)].place == far()))
                drop(tensor, stays_[index(at)], stays_[index(at)].until);
    }
    for (const Index *write = work_.writes.begin(here); write != work_.writes.end(here); ++write) {
        const Index tensor = work_.write_tensor[index(*write)], slot = work_.write_slot[index(*write)];
        Stay *stay = find(tensor, place);
        if (stay == nullptr || stay->memory < 0)
            continue;
        if (work_.result[index(tensor)]) {
            if (!linked(place, far()))
                return fail(Failure::route, node, tensor, place, far());
            const Index memory = memory_at(far(), slot);
            const int64_t start = std::max(end, first_free(place, far()));
            const int64_t sent = carry(tensor, place, far(), stay->memory, memory, start, Cause::result, node);
            store(tensor, reach(tensor, far()), memory, start, sent);
            stay = find(tensor, place);
        }
        if (pending_[index(tensor)] == 0)
            drop(tensor, *stay, stay->until);
    }
    return true;
}

// Brings a tensor to a place where it is not, as early as can be; `time` is when the node could start.
bool Scheduler::bring(Index tensor, Index slot, Index place, Index node, int64_t &time) {
    if (const Stay *stay = find(tensor, place); stay != nullptr && stay->memory >= 0) {
        time = std::max(time, stay->since);
        return true;
    }
    Index source = -1, holder = -1;
    for (Index at = stays_of_[index(tensor)]; at >= 0; at = stays_[index(at)].next) {
        const Stay &stay = stays_[index(at)];
        if (stay.memory < 0)
            continue;
        holder = stay.place;
        if (linked(holder, place) && (source < 0 || holder < source))
            source = holder;
    }
    if (source < 0)
        return fail(Failure::route, node, tensor, holder, place);
    const Index memory = memory_at(place, slot);
    if (memory < 0)
        return fail(Failure::room, node, tensor, place);
    const int64_t wish = std::max(find(tensor, source)->since, first_free(source, place));
    int64_t room = 0;
    if (!make_room(memory, tensor, work_.bits[index(tensor)], place, node, wish, time, room))
        return false;
    const int64_t start = std::max(room, std::max(wish, first_free(source, place)));
    const Index from = find(tensor, source)->memory;
    const Cause cause = source == far() ? Cause::fetch : place == far() ? Cause::evict : Cause::pass;
    const int64_t end = carry(tensor, source, place, from, memory, start, cause, node);
    store(tensor, reach(tensor, place), memory, start, end);
    spread(tensor, slot, source, place, from, start, end, cause, node);
    time = std::max(time, end);
    Stay *stay = find(tensor, source);
    stay->until = std::max(stay->until, end);
    if (cause == Cause::pass && stay->pending == 0)
        drop(tensor, *stay, stay->until);
    return true;
}

// The first moment from `wish` on with room for so many bits, a tensor's and perhaps more; where there is never any, others leave when the node starts.
bool Scheduler::make_room(Index memory, Index tensor, int64_t bits, Index place, Index node, int64_t wish,
                          int64_t &time, int64_t &room) {
    const int64_t capacity = fabric_.capacity[index(memory)];
    Usage &usage = usage_[index(memory)];
    room = usage.room(wish, bits, capacity);
    if (room != never)
        return true;
    struct Choice {
        int64_t weight, bits;
        Index tensor;
    };
    std::vector<Choice> choices;
    for (const Index other : contents_[index(memory)])
        if (!needs(node, other))
            choices.push_back(
                {find(other, place)->pending * work_.bits[index(other)], work_.bits[index(other)], other});
    std::sort(choices.begin(), choices.end(), [](const Choice &one, const Choice &other) {
        return std::tie(one.weight, one.bits, one.tensor) < std::tie(other.weight, other.bits, other.tensor);
    });
    int64_t left = bits - capacity, done = time;
    for (const Index other : contents_[index(memory)])
        left += work_.bits[index(other)];
    for (const Choice &choice : choices) {
        if (left <= 0)
            break;
        if (!evict(choice.tensor, place, node, time, done))
            return false;
        left -= choice.bits;
    }
    if (left > 0)
        return fail(Failure::room, node, tensor, place);
    time = std::max(time, done);
    room = usage.room(std::max(wish, time), bits, capacity);
    if (room == never) // only where a memory forgets what left it
        room = std::max(wish, time);
    return true;
}

// Takes a tensor out of a place; the last copy goes off the chip. `done` is when all is gone.
bool Scheduler::evict(Index tensor, Index place, Index node, int64_t time, int64_t &done) {
    if (place == far())
        return fail(Failure::room, node, tensor, place);
    Stay *stay = find(tensor, place);
    int64_t gone = std::max({time, stay->since, stay->until});
    bool elsewhere = false;
    for (Index at = stays_of_[index(tensor)]; at >= 0; at = stays_[index(at)].next)
        elsewhere |= stays_[index(at)].memory >= 0 && stays_[index(at)].place != place;
    if (!elsewhere) {
        if (!linked(place, far()))
            return fail(Failure::route, node, tensor, place, far());
        Index memory = -1;
        for (Index slot = 0; slot < fabric_.slots && memory < 0; ++slot)
            memory = memory_at(far(), slot);
        const int64_t start = std::max(gone, first_free(place, far()));
        gone = carry(tensor, place, far(), stay->memory, memory, start, Cause::evict, node);
        store(tensor, reach(tensor, far()), memory, start, gone);
        stay = find(tensor, place);
    }
    drop(tensor, *stay, gone);
    done = std::max(done, gone);
    return true;
}

bool Scheduler::needs(Index node, Index tensor) const {
    for (const Index *read = work_.reads.begin(index(node)); read != work_.reads.end(index(node)); ++read)
        if (work_.read_tensor[index(*read)] == tensor)
            return true;
    return false;
}

bool Scheduler::fail(Failure failure, Index node, Index tensor, Index place, Index other) {
    out_.failure = failure;
    out_.node = node;
    out_.tensor = tensor;
    out_.place = place;
    out_.other = other;
    return false;
}

Scheduler::Stay *Scheduler::find(Index tensor, Index place) {
    for (Index at = stays_of_[index(tensor)]; at >= 0; at = stays_[index(at)].next)
        if (stays_[index(at)].place == place)
            return &stays_[index(at)];
    return nullptr;
}

Scheduler::Stay &Scheduler::reach(Index tensor, Index place) {
    if (Stay *stay = find(tensor, place))
        return *stay;
    stays_.push_back({place, -1, stays_of_[index(tensor)], 0, 0, 0, 0});
    stays_of_[index(tensor)] = static_cast<Index>(stays_.size() - 1);
    return stays_.back();
}

void Scheduler::store(Index tensor, Stay &stay, Index memory, int64_t from, int64_t since) {
    if (stay.memory >= 0)
        return;
    const int64_t bits = work_.bits[index(tensor)];
    stay.memory = memory;
    stay.since = since;
    stay.until = std::max(stay.until, since);
    std::vector<Index> &contents = contents_[index(memory)];
    stay.at = contents.size();
    contents.push_back(tensor);
    usage_[index(memory)].change(from, bits);
    if (trace_)
        out_.stored.push_back({memory, tensor, from, bits});
}

void Scheduler::drop(Index tensor, Stay &stay, int64_t time) {
    std::vector<Index> &contents = contents_[index(stay.memory)];
    const Index last = contents.back();
    contents[stay.at] = last;
    find(last, stay.place)->at = stay.at;
    contents.pop_back();
    const int64_t bits = work_.bits[index(tensor)];
    if (rules_.as_stream)
        usage_[index(stay.memory)].forget(time, bits);
    else
        usage_[index(stay.memory)].change(time, -bits);
    if (trace_)
        out_.stored.push_back({stay.memory, tensor, time, -bits});
    stay.memory = -1;
    left_ = true;
}

} // namespace tilewright::schedule
