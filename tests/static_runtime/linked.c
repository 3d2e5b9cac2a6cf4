/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime is in a library that this program is linked with. A constructor
 * of that library asks for devices before anything of this file runs.
 */
int runAll(void);

int main(void) { return runAll(); }
