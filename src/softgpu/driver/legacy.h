// SPDX-License-Identifier: Apache-2.0
//
// Types of the first versions of functions, which cuda.h shows to nobody.
#pragma once

using CUdeviceptr_v1 = unsigned int;
