#include "devices.h"

volatile uint32_t results[256];
