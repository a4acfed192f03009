// The event unit of a cluster: events by core, and what waits for them: barriers, mutexes, software events, dispatch.
#pragma once

#include "checks/order.h"
#include "machine/device.h"

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace tilewright {

// Settings: first_hart, harts, barriers, mutexes, dispatch_depth, barrier_event, mutex_event, dispatch_event,
// wake_cycles (between an event and the end of the event load that slept; default 0).
// Registers: those of all cores at 0x40 * core, barriers at 0x400, software events at 0x600; from `port` on, what a
// core sees of itself.
class EventUnit final : public Device {
  public:
    static constexpr uint32_t port = 0x800;

    EventUnit(Machine &machine, const std::string &name, const Settings &settings);
    Reply access(const Access &access) override;
    // An event of all cores.
    void signal(uint32_t line, int64_t time) override;
    void acknowledge(Hart &hart, uint32_t line) override;
    std::map<std::string, uint64_t> statistics() const override;

  private:
    enum class Wait : uint8_t { none, event, mutex, dispatch };
    struct Core {
        uint32_t mask = 0;
        uint32_t interrupt_mask = 0;
        uint32_t buffer = 0;
        uint32_t software_targets = 0;
        Wait wait = Wait::none;
        bool clears = false;   // the end of the wait clears all events of the mask
        uint32_t message = 0;  // what the end of the wait gives, for mutexes and dispatch
        uint32_t replayed = 0; // register of an event load that an interrupt broke off: it has triggered already
        // For checks: what harts that triggered an event had done, and how many transfers had ended, by event.
        std::array<Clock, 32> told{};
        std::array<uint64_t, 32> ends{};
        Clock given{}; // with the message
    };
    struct Barrier {
        uint32_t trigger_mask = 0;
        uint32_t status = 0;
        uint32_t target_mask = 0;
        Clock arrived{}; // what those that have arrived had done, for checks
    };
    struct Mutex {
        bool locked = false;
        uint32_t message = 0;
        std::deque<uint32_t> waiting;
        Clock left{}; // what owners had done, for checks
    };
    struct Dispatched {
        uint32_t value;
        uint32_t readers; // cores that have not read it yet
        Clock pushed;     // what the one who pushed it had done, for checks
    };
    struct BlockedPush {
        uint32_t core;
        uint32_t value;
    };

    Reply port_access(uint32_t core, uint32_t offset, const Access &access);
    Reply core_register(uint32_t core, uint32_t offset, const Access &access, bool own);
    Reply barrier_register(uint32_t number, uint32_t offset, const Access &access, bool own, uint32_t core);
    Reply software_event(uint32_t core, uint32_t offset, const Access &access);
    Reply mutex(uint32_t core, uint32_t number, const Access &access);
    Reply dispatch(uint32_t core, uint32_t offset, const Access &access);

    Reply wait_for_event(uint32_t core, bool clears);
    Reply sleep(uint32_t core, Wait wait);
    void arrive(Barrier &barrier, uint32_t cores, const Access &access);
    // Lets all of a team that wait for it take what was pushed.
    void push_dispatch(uint32_t core, uint32_t value, int64_t time);
    bool take_dispatch(uint32_t core, uint32_t &value, int64_t time);
    void trigger(uint32_t cores, uint32_t events, const Clock &told, int64_t time);
    // The core learns what its events tell.
    void learn(uint32_t core, uint32_t events);
    // Wakes the core if what it waits for is there, and brings its interrupts up to date.
    void settle(uint32_t core, int64_t time);
    void break_off(uint32_t core);
    bool is_core(const Hart &hart) const;
    Hart &hart_of(uint32_t core);

    uint32_t first_;
    uint32_t barrier_event_, mutex_event_, dispatch_event_; // as bits
    size_t dispatch_depth_;
    int64_t wake_cycles_;
    std::vector<Core> cores_;
    std::vector<Barrier> barriers_;
    std::vector<Mutex> mutexes_;
    std::deque<Dispatched> dispatched_;
    std::deque<BlockedPush> blocked_;
    uint32_t team_ = 0;
    std::vector<uint32_t> waiting_register_; // by core: of the event load it sleeps in
    uint64_t barriers_passed_ = 0, waits_ = 0, sleeps_ = 0, software_events_ = 0, mutex_waits_ = 0, dispatches_ = 0;
};

} // namespace tilewright
