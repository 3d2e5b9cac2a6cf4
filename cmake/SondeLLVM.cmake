# SPDX-License-Identifier: Apache-2.0
# Finds LLVM 18 to 21 (19 preferred) and defines the interface target
# sonde_llvm: the static component libraries the JIT needs, linked with hidden
# symbols because the process may carry an LLVM of its own.
include_guard(GLOBAL)

# The package's version test wants the exact minor version, so the major one is
# checked here.
if(NOT LLVM_DIR)
  foreach(version IN ITEMS 19 20 21 18)
    if(NOT LLVM_FOUND)
      find_package(LLVM CONFIG QUIET NO_DEFAULT_PATH PATHS /usr/lib/llvm-${version} /usr/local/opt/llvm@${version})
    endif()
  endforeach()
endif()
if(NOT LLVM_FOUND)
  find_package(LLVM CONFIG QUIET)
endif()
if(NOT LLVM_FOUND OR LLVM_VERSION_MAJOR LESS 18 OR LLVM_VERSION_MAJOR GREATER 21)
  message(FATAL_ERROR "LLVM 18 to 21 was not found (found: '${LLVM_VERSION}'). "
    "Install llvm-19-dev, or set LLVM_DIR to its lib/cmake/llvm.")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")

# LLVM's compression libraries go in with it where the static ones are installed:
# a process may carry other versions of its own.
foreach(pair IN ITEMS "ZLIB::ZLIB libz.a" "zstd::libzstd_shared libzstd.a")
  separate_arguments(pair)
  list(GET pair 0 target)
  list(GET pair 1 file)
  find_library(SONDE_STATIC_${file} ${file})
  mark_as_advanced(SONDE_STATIC_${file})
  if(TARGET ${target} AND SONDE_STATIC_${file})
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${SONDE_STATIC_${file}})
  endif()
endforeach()

llvm_map_components_to_libnames(sonde_llvm_libs
  core support orcjit passes irreader bitreader bitwriter analysis transformutils scalaropts instcombine ipo
  x86codegen x86asmparser x86desc x86info x86disassembler targetparser mcdisassembler)

set_property(GLOBAL PROPERTY SONDE_LLVM_MAJOR ${LLVM_VERSION_MAJOR})
add_library(sonde_llvm INTERFACE)
target_include_directories(sonde_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
separate_arguments(sonde_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(sonde_llvm INTERFACE ${sonde_llvm_definitions}
  $<$<NOT:$<BOOL:${LLVM_ENABLE_RTTI}>>:$<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>>)
target_link_libraries(sonde_llvm INTERFACE ${sonde_llvm_libs})
target_link_options(sonde_llvm INTERFACE LINKER:--exclude-libs,ALL)
