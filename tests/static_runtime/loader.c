/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a shared object while it runs, as Python loads its extension modules.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*run)(void) = library ? (int (*)(void))dlsym(library, "runAll") : NULL;
  if (!run) {
    printf("%s\n", dlerror());
    return 1;
  }
  return run();
}
