# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. The tree can be moved, and serves in three
# ways: as it is; through find_package(Sonde) or pkg-config; and as an overlay
# that find_package(CUDAToolkit) and clients with a CUDA_HOME setting accept.
#
#   bin/{sonde,sondecc}
#   include/{cupti*.h,…}           the interface of libcupti
#   include/softgpu/               CUDA headers for machines without a toolkit
#   include/{cuda,cuda_runtime…}.h the toolkit's where there is one, else those
#   lib64/libcupti.so.13 …         libsonde-collector.so
#   lib64/softgpu/                 libcuda.so.1, libcudart.so.13
#   lib64/{libcuda,libcudart}.so   links for those who link, into softgpu/
#   share/doc/sonde/               docs/*.md, examples/cupti/
#   version.txt                    for find_package(CUDAToolkit), which otherwise asks nvcc

function(sonde_install_targets destination)
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      install(TARGETS ${target} RUNTIME DESTINATION ${destination} LIBRARY DESTINATION ${destination})
    endif()
  endforeach()
endfunction()

sonde_install_targets(bin sonde)
# The rooms install libcupti, libcudart, sondecc and the headers themselves.
sonde_install_targets(lib64 sonde-collector)
sonde_install_targets(lib64/softgpu sonde_softgpu_cuda)

# All of them, or a client would get one header from here and the next from nowhere.
file(GLOB forwarded RELATIVE ${PROJECT_SOURCE_DIR}/include/softgpu CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/include/softgpu/*.h ${PROJECT_SOURCE_DIR}/include/softgpu/cooperative_groups/*.h
  ${PROJECT_SOURCE_DIR}/include/softgpu/nvtx3/*.h)
list(FILTER forwarded EXCLUDE REGEX "(^|/)(sonde_|curand_|cuda_runtime_before)")
foreach(header IN LISTS forwarded)
  get_filename_component(folder ${header} DIRECTORY)
  set(up "")
  if(folder)
    set(up "../")
  endif()
  string(MAKE_C_IDENTIFIER ${header} guard)
  string(TOUPPER ${guard} guard)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/package/forward.h.in ${PROJECT_BINARY_DIR}/package/include/${header} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package/include/${header} DESTINATION include/${folder})
endforeach()

# The tree says which toolkit it stands for: the one its CUPTI_API_VERSION names.
set(SONDE_CUDA_VERSION 13.0)
file(WRITE ${PROJECT_BINARY_DIR}/package/version.txt "CUDA Version ${SONDE_CUDA_VERSION}.88\n")
file(WRITE ${PROJECT_BINARY_DIR}/package/version.json
  "{\"cuda\":{\"name\":\"CUDA interface of Sonde\",\"version\":\"${SONDE_CUDA_VERSION}.88\"}}\n")
install(FILES ${PROJECT_BINARY_DIR}/package/version.txt ${PROJECT_BINARY_DIR}/package/version.json DESTINATION .)
install(CODE [[
  get_filename_component(lib "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib64" ABSOLUTE BASE_DIR "$ENV{PWD}")
  foreach(pair IN ITEMS libcuda.so:libcuda.so.1 libcudart.so:libcudart.so.13)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 name)
    list(GET pair 1 target)
    if(EXISTS "${lib}/softgpu/${target}")
      file(CREATE_LINK "softgpu/${target}" "${lib}/${name}" SYMBOLIC)
    endif()
  endforeach()
]])

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/SondeConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_SOURCE_DIR}/cmake/package/SondeConfig.cmake
  ${PROJECT_BINARY_DIR}/package/SondeConfigVersion.cmake
  DESTINATION share/cmake/Sonde)

foreach(name IN ITEMS sonde cupti)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/package/${name}.pc.in ${PROJECT_BINARY_DIR}/package/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package/${name}.pc DESTINATION lib64/pkgconfig)
endforeach()

# For those who have only the tree: the pages, and the programs that they explain.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION share/doc/sonde FILES_MATCHING PATTERN "*.md")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/cupti DESTINATION share/doc/sonde/examples
  FILES_MATCHING PATTERN "*.c" PATTERN "*.h")
if(EXISTS ${PROJECT_SOURCE_DIR}/docs/sonde.1)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/sonde.1 DESTINATION share/man/man1)
endif()
