# SPDX-License-Identifier: Apache-2.0
# find_package(Sonde) gives
#   Sonde::cupti        libcupti.so.13 and its headers
#   Sonde::cuda_driver  the software GPU's libcuda.so.1
#   Sonde::cudart       the software GPU's libcudart.so.13
# and the variables Sonde_PREFIX and Sonde_SOFTGPU_DIR
# (what LD_LIBRARY_PATH must begin with to run on the software GPU).
get_filename_component(Sonde_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(Sonde_SOFTGPU_DIR "${Sonde_PREFIX}/lib64/softgpu")

function(_sonde_import name file include)
  if(TARGET Sonde::${name} OR NOT EXISTS "${file}")
    return()
  endif()
  add_library(Sonde::${name} SHARED IMPORTED)
  set_target_properties(Sonde::${name} PROPERTIES
    IMPORTED_LOCATION "${file}"
    INTERFACE_INCLUDE_DIRECTORIES "${include}")
endfunction()

_sonde_import(cupti "${Sonde_PREFIX}/lib64/libcupti.so" "${Sonde_PREFIX}/include")
_sonde_import(cuda_driver "${Sonde_SOFTGPU_DIR}/libcuda.so.1" "${Sonde_PREFIX}/include/softgpu")
_sonde_import(cudart "${Sonde_SOFTGPU_DIR}/libcudart.so.13" "${Sonde_PREFIX}/include/softgpu")

set(Sonde_FOUND TRUE)
if(NOT TARGET Sonde::cupti)
  set(Sonde_FOUND FALSE)
  set(Sonde_NOT_FOUND_MESSAGE "${Sonde_PREFIX}/lib64 has no libcupti.so")
endif()
