# SPDX-License-Identifier: Apache-2.0
# Build options, the compiler settings every target shares, and the functions
# that the rooms use to declare targets.

option(SONDE_BUILD_TESTS "Build the tests" ON)
option(SONDE_BUILD_BENCH "Build the benchmarks" OFF)
option(SONDE_BUILD_FUZZERS "Build the fuzzers (needs clang)" OFF)
option(SONDE_WERROR "Treat warnings as errors" OFF)
set(SONDE_SANITIZE "" CACHE STRING "address,undefined | thread | (empty)")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

find_program(SONDE_CCACHE ccache)
if(SONDE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${SONDE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SONDE_CCACHE})
endif()

find_package(Threads REQUIRED)

add_library(sonde_options INTERFACE)
target_include_directories(sonde_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(sonde_options INTERFACE
  -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
  # GCC 12 sees overlaps in std::string at -O3 that are not there.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wno-restrict>
  $<$<BOOL:${SONDE_WERROR}>:-Werror>)
if(SONDE_SANITIZE)
  target_compile_options(sonde_options INTERFACE
    -fsanitize=${SONDE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(sonde_options INTERFACE -fsanitize=${SONDE_SANITIZE})
  if(SONDE_SANITIZE MATCHES "undefined")
    # Must stand behind -fsanitize: see sonde_c_interface.
    target_compile_options(sonde_options INTERFACE
      $<$<BOOL:$<TARGET_PROPERTY:SONDE_C_INTERFACE>>:-fno-sanitize=enum>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Functions found by dlsym or generated at run time carry no type to check.
    target_compile_options(sonde_options INTERFACE -fno-sanitize=function)
    if(NOT SONDE_BUILD_FUZZERS)
      # One run-time library for the program and the shared libraries that it loads.
      execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-resource-dir OUTPUT_VARIABLE resources
                      OUTPUT_STRIP_TRAILING_WHITESPACE)
      set(SONDE_SANITIZER_DIR ${resources}/lib/linux)
      target_link_options(sonde_options INTERFACE -shared-libsan -Wl,-rpath,${SONDE_SANITIZER_DIR})
    endif()
  endif()
endif()
if(SONDE_BUILD_FUZZERS)
  # What a fuzzer is to explore must be instrumented too, not only its entry.
  target_compile_options(sonde_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# sonde_library(name SOURCES … [DEPENDS …]): a static library of one room, for
# the shared libraries and the tests to link.
function(sonde_library name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_link_libraries(${name} PUBLIC sonde_options ${A_DEPENDS})
endfunction()

# sonde_c_interface(target): an enumeration that comes through a C interface may
# hold anything; that is answered with an error code, and is no finding.
function(sonde_c_interface target)
  set_target_properties(${target} PROPERTIES SONDE_C_INTERFACE TRUE)
endfunction()

# sonde_test(name SOURCES … [DEPENDS …] [ENVIRONMENT A=1 B=2] [PROPERTIES …]): a GoogleTest program; each test case
# in it becomes a ctest of its own.
function(sonde_test name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPENDS;PROPERTIES;ENVIRONMENT" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${A_SOURCES})
  sonde_c_interface(${name})  # called with what is no enumerator
  # Our headers come first for every test: one that takes a toolkit's by mistake would only build where there is one.
  target_link_libraries(${name} PRIVATE sonde_options ${A_DEPENDS} sonde_cupti_headers GTest::gtest_main GTest::gmock Threads::Threads)
  if(A_ENVIRONMENT)
    # A list in PROPERTIES would fall apart on its way into the test script.
    set_target_properties(${name} PROPERTIES CROSSCOMPILING_EMULATOR "${CMAKE_COMMAND};-E;env;${A_ENVIRONMENT}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES ${A_PROPERTIES})
endfunction()
