// SPDX-License-Identifier: Apache-2.0
#define OCCUPANCY_NAME askToolkit
#include "occupancy_calls.h"
