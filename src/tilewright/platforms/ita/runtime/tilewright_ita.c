#include "tilewright_ita.h"

#include "tilewright_machine.h"

TW_NEAR uint32_t tw_ita_jobs;
static TW_NEAR uint32_t awaited; /* how many there were when jobs were last waited for */

void tw_await_ita(int recent) {
    const uint32_t jobs = recent ? tw_ita_jobs : awaited;
    awaited = tw_ita_jobs;
    while ((int32_t)(TW_ITA_REGISTER(8) - jobs) < 0)
        ;
}

void tw_ita_restart(void) {
    tw_await_ita(1);
    TW_ITA_REGISTER(0x14) = 1;
    tw_ita_jobs = awaited = 0;
}
