/* SPDX-License-Identifier: Apache-2.0
 *
 * Nothing to configure: any C++17 compiler for 64-bit Linux will do. The file
 * exists because programs include it.
 */
#ifndef __HOST_CONFIG_H__
#define __HOST_CONFIG_H__

#if !defined(__LP64__)
#error "The CUDA headers of Sonde are for 64-bit Linux."
#endif

#define _CRTIMP

#endif /* __HOST_CONFIG_H__ */
