// Devices: registers at addresses, and things that happen later.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>

namespace tilewright {

struct Hart;
class Machine;

using Setting = std::variant<int64_t, std::string>;

// Numbers and names that a description gives to a device; asking for one that is not there is an error that names it.
class Settings {
  public:
    Settings(std::string owner, std::map<std::string, Setting> values)
        : owner_(std::move(owner)), values_(std::move(values)) {}
    Settings(std::string owner, const std::map<std::string, int64_t> &values)
        : owner_(std::move(owner)), values_(values.begin(), values.end()) {}
    int64_t operator[](const std::string &key) const { return get<int64_t>(key, "a number"); }
    const std::string &text(const std::string &key) const { return get<std::string>(key, "a name"); }
    bool has(const std::string &key) const {
        asked_.insert(key);
        return values_.contains(key);
    }
    int64_t either(const std::string &key, int64_t otherwise) const { return has(key) ? (*this)[key] : otherwise; }
    uint32_t word(const std::string &key) const { return static_cast<uint32_t>((*this)[key]); }
    // An error about a setting that nobody asked for; those of `common` are given to everybody.
    void finish(const std::set<std::string> &common) const {
        for (const auto &[key, value] : values_)
            if (!asked_.contains(key) && !common.contains(key))
                throw std::invalid_argument(owner_ + ": there is no setting '" + key + "'");
    }

  private:
    template <class Kind> const Kind &get(const std::string &key, const char *what) const {
        asked_.insert(key);
        const auto found = values_.find(key);
        if (found == values_.end())
            throw std::invalid_argument(owner_ + ": '" + key + "' is missing");
        if (!std::holds_alternative<Kind>(found->second))
            throw std::invalid_argument(owner_ + ": '" + key + "' must be " + what);
        return std::get<Kind>(found->second);
    }

    std::string owner_;
    std::map<std::string, Setting> values_;
    mutable std::set<std::string> asked_;
};

// A load or store of a device's register.
struct Access {
    Hart &hart;
    uint32_t offset; // from the device's base
    uint32_t size;   // bytes
    bool write;
    bool event_load; // p.elw: the hart may be put to sleep
    uint32_t value;  // what is written
    int64_t time;    // of the machine
    uint32_t pc;
    uint32_t address; // as the program writes it
};

struct Reply {
    uint32_t value = 0;
    uint32_t wait = 0;    // cycles of the hart beyond the device's latency
    bool asleep = false;  // the device will wake the hart, with Machine::wake
    bool refused = false; // no such register
};

class Device {
  public:
    Device(Machine &machine, std::string name) : machine_(machine), name_(std::move(name)) {}
    virtual ~Device() = default;
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    virtual Reply access(const Access &access) = 0;
    // An event that was scheduled with Machine::schedule.
    virtual void happen(uint32_t tag) { static_cast<void>(tag); }
    // Another device's signal, for example an event line of the event unit.
    virtual void signal(uint32_t line, int64_t time) {
        static_cast<void>(line);
        static_cast<void>(time);
    }
    // A hart has entered the handler of an interrupt that the device asked for.
    virtual void acknowledge(Hart &hart, uint32_t line) {
        static_cast<void>(hart);
        static_cast<void>(line);
    }
    // Whether a register only keeps what is written, so that harts can tell each other by it.
    virtual bool only_keeps(uint32_t offset) const {
        static_cast<void>(offset);
        return false;
    }
    // What it did, for tables: names with numbers.
    virtual std::map<std::string, uint64_t> statistics() const { return {}; }

    const std::string &name() const { return name_; }

  protected:
    Machine &machine_;

  private:
    std::string name_;
};

} // namespace tilewright
