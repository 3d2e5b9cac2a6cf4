/* SPDX-License-Identifier: Apache-2.0
 * Another client of libcupti in the same process. */
#include <cupti.h>

__attribute__((visibility("default"))) CUptiResult pluginEnable(CUpti_EventGroup group) {
  return cuptiEventGroupEnable(group);
}
__attribute__((visibility("default"))) CUptiResult pluginDisable(CUpti_EventGroup group) {
  return cuptiEventGroupDisable(group);
}
