// SPDX-License-Identifier: Apache-2.0
// Which sanitizer the test is built with: GCC defines a macro, clang answers a question.
#ifndef SONDE_TESTS_SANITIZERS_H_
#define SONDE_TESTS_SANITIZERS_H_

#if defined(__SANITIZE_ADDRESS__)
#define SONDE_WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SONDE_WITH_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define SONDE_WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SONDE_WITH_TSAN 1
#endif
#endif

#ifndef SONDE_WITH_ASAN
#define SONDE_WITH_ASAN 0
#endif
#ifndef SONDE_WITH_TSAN
#define SONDE_WITH_TSAN 0
#endif

#endif  // SONDE_TESTS_SANITIZERS_H_
