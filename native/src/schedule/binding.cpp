// Python's view of the scheduler of many cores.
#include "schedule/binding.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "schedule/scheduler.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tilewright::schedule {

namespace {

template <typename T> using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T> std::vector<T> numbers(const nb::dict &given, const char *name) {
    if (!given.contains(name))
        throw std::invalid_argument(std::string("an array is missing: ") + name);
    const auto array = nb::cast<Array<T>>(given[name]);
    return {array.data(), array.data() + array.size()};
}

Rows rows(const nb::dict &given, const std::string &name) {
    return {numbers<int64_t>(given, (name + "_starts").c_str()), numbers<Index>(given, name.c_str())};
}

// One row of operands for each node: their numbers run on from node to node.
Rows counted(const nb::dict &given, const std::string &name) {
    Rows found{numbers<int64_t>(given, (name + "_starts").c_str()), {}};
    found.items.resize(static_cast<size_t>(found.starts.back()));
    for (size_t at = 0; at < found.items.size(); ++at)
        found.items[at] = static_cast<Index>(at);
    return found;
}

Fabric fabric_of(const nb::dict &given) {
    Fabric fabric;
    fabric.places = nb::cast<Index>(given["places"]);
    fabric.slots = nb::cast<Index>(given["slots"]);
    fabric.memory_of = numbers<Index>(given, "memory_of");
    fabric.site = numbers<Index>(given, "site");
    fabric.capacity = numbers<int64_t>(given, "capacity");
    fabric.read_word = numbers<int64_t>(given, "read_word");
    fabric.write_word = numbers<int64_t>(given, "write_word");
    fabric.read_energy = numbers<double>(given, "read_energy");
    fabric.write_energy = numbers<double>(given, "write_energy");
    fabric.bandwidth = numbers<double>(given, "bandwidth");
    fabric.link_energy = numbers<double>(given, "link_energy");
    fabric.multicast = numbers<uint8_t>(given, "multicast");
    fabric.routes = rows(given, "routes");
    return fabric;
}

Work work_of(const nb::dict &given) {
    Work work;
    work.group = numbers<Index>(given, "group");
    work.kind = numbers<Index>(given, "kind");
    work.before = rows(given, "before");
    work.reads = counted(given, "reads");
    work.read_tensor = numbers<Index>(given, "read_tensor");
    work.read_slot = numbers<Index>(given, "read_slot");
    work.writes = counted(given, "writes");
    work.write_tensor = numbers<Index>(given, "write_tensor");
    work.write_slot = numbers<Index>(given, "write_slot");
    work.rank = numbers<int64_t>(given, "rank");
    work.bits = numbers<int64_t>(given, "bits");
    work.result = numbers<uint8_t>(given, "result");
    work.cycles = numbers<int64_t>(given, "cycles");
    work.energy = numbers<double>(given, "energy");
    work.far_energy = numbers<double>(given, "far_energy");
    work.streamed = numbers<uint32_t>(given, "streamed");
    return work;
}

template <typename T> nb::object array(std::vector<T> values) {
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *data) noexcept { delete static_cast<std::vector<T> *>(data); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

// One column of a list of records.
template <typename T, typename Record, typename Field>
nb::object column(const std::vector<Record> &records, Field Record::*field) {
    std::vector<T> values;
    values.reserve(records.size());
    for (const Record &record : records)
        values.push_back(static_cast<T>(record.*field));
    return array(std::move(values));
}

nb::dict result_of(Outcome outcome, bool trace) {
    nb::dict found;
    found["failure"] = static_cast<int>(outcome.failure);
    found["failed"] = nb::make_tuple(outcome.node, outcome.tensor, outcome.place, outcome.other);
    found["latency"] = outcome.latency;
    found["compute_energy"] = outcome.compute_energy;
    found["far_energy"] = outcome.far_energy;
    found["link_energy"] = std::vector<double>(outcome.link_energy, outcome.link_energy + causes);
    found["memory_energy"] = std::vector<double>(outcome.memory_energy, outcome.memory_energy + causes);
    found["peaks"] = std::move(outcome.peaks);
    if (!trace)
        return found;
    found["start"] = array(std::move(outcome.start));
    found["end"] = array(std::move(outcome.end));
    const auto &transfers = outcome.transfers;
    found["transfers"] =
        nb::make_tuple(column<Index>(transfers, &Transfer::tensor), column<Index>(transfers, &Transfer::source),
                       column<Index>(transfers, &Transfer::target), column<Index>(transfers, &Transfer::node),
                       column<Index>(transfers, &Transfer::cause), column<Index>(transfers, &Transfer::carrier),
                       column<int64_t>(transfers, &Transfer::start), column<int64_t>(transfers, &Transfer::end));
    const auto &busy = outcome.busy;
    found["busy"] = nb::make_tuple(column<Index>(busy, &Busy::link), column<Index>(busy, &Busy::transfer),
                                   column<Index>(busy, &Busy::node), column<int64_t>(busy, &Busy::start),
                                   column<int64_t>(busy, &Busy::end));
    const auto &stored = outcome.stored;
    found["stored"] = nb::make_tuple(column<Index>(stored, &Stored::memory), column<Index>(stored, &Stored::tensor),
                                     column<int64_t>(stored, &Stored::time), column<int64_t>(stored, &Stored::bits));
    return found;
}

double energy_of(const Outcome &outcome) {
    double sum = outcome.compute_energy + outcome.far_energy;
    for (size_t cause = 0; cause < causes; ++cause) {
        sum += outcome.link_energy[cause];
        sum += outcome.memory_energy[cause];
    }
    return sum;
}

// Many allocations, shared among threads; what comes out does not depend on how many there are.
nb::tuple evaluated(Scheduler &self, const nb::ndarray<const Index, nb::ndim<2>, nb::c_contig> &places,
                    size_t workers) {
    const size_t count = places.shape(0), groups = places.shape(1);
    std::vector<int64_t> latency(count, -1), peak(count, 0);
    std::vector<double> energy(count, 0);
    {
        nb::gil_scoped_release release;
        std::atomic<size_t> next{0};
        const auto work = [&](Scheduler &scheduler) {
            for (size_t at = next++; at < count; at = next++) {
                const Outcome outcome = scheduler.run(places.data() + at * groups, false);
                if (outcome.failure != Failure::none)
                    continue;
                latency[at] = outcome.latency;
                energy[at] = energy_of(outcome);
                peak[at] = scheduler.peak(outcome);
            }
        };
        std::vector<std::thread> others;
        for (size_t more = 1; more < std::min(workers, count); ++more)
            others.emplace_back([&] {
                Scheduler mine = self.fresh();
                work(mine);
            });
        work(self);
        for (std::thread &other : others)
            other.join();
    }
    return nb::make_tuple(array(std::move(latency)), array(std::move(energy)), array(std::move(peak)));
}

} // namespace

void bind_schedule(nb::module_ &module) {
    nb::class_<Scheduler>(module, "Scheduler")
        .def(
            "__init__",
            [](Scheduler *self, const nb::dict &fabric, const nb::dict &work, bool by_time, bool as_stream) {
                new (self)
                    Scheduler(std::make_shared<Problem>(fabric_of(fabric), work_of(work), Rules{by_time, as_stream}));
            },
            "fabric"_a, "work"_a, "by_time"_a, "as_stream"_a)
        .def(
            "run",
            [](Scheduler &self, const Array<Index> &places, bool trace) {
                Outcome outcome;
                {
                    nb::gil_scoped_release release;
                    outcome = self.run(places.data(), trace);
                }
                return result_of(std::move(outcome), trace);
            },
            "places"_a, "trace"_a = false)
        .def("evaluate", &evaluated, "places"_a, "workers"_a);
}

} // namespace tilewright::schedule
