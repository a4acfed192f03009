// The host that a program talks to through two words of memory: it ends there, and prints.
#include "machine/machine.h"

namespace tilewright {

void Machine::talk_to_host(uint32_t to_host, uint32_t from_host) {
    to_host_ = to_host;
    from_host_ = from_host;
}

// An odd request ends the program; another one is the address of a system call: number, then arguments, 64 bits each.
void Machine::ask_host(const Hart &hart, const Op *op, uint32_t request, int64_t time) {
    constexpr uint64_t call_write = 64, call_exit = 93;
    if (request == 0)
        return;
    if ((request & 1) != 0) {
        exit(request >> 1, hart, hart.code->pc_of(op), time);
        return;
    }
    uint64_t words[4] = {};
    const auto call = bytes(request, sizeof words);
    if (call.size() != sizeof words)
        return;
    std::memcpy(words, call.data(), sizeof words);
    if (words[0] == call_exit)
        exit(static_cast<uint32_t>(words[1]), hart, hart.code->pc_of(op), time);
    if (words[0] == call_write)
        for (const uint8_t character : bytes(static_cast<uint32_t>(words[2]), static_cast<uint32_t>(words[3])))
            print(static_cast<char>(character));
    if (from_host_ != 0)
        if (const auto answer = bytes(from_host_, 4); answer.size() == 4) {
            answer[0] = 1;
            checks_.written_from_outside({from_host_, from_host_ + 8});
        }
}

} // namespace tilewright
