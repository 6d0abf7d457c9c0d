# muster_library(NAME SOURCES… LINK …), muster_test(NAME SOURCES… LINK …): one line for each target.
function(muster_library name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${arg_LINK})
endfunction()

# A GoogleTest program, run as one ctest.
function(muster_test name)
  if(NOT MUSTER_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gtest_main GTest::gmock)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()

# Precompiles the heavy headers of what talks gRPC: most of the time of a file that includes them goes into reading them.
function(muster_precompile name)
  target_precompile_headers(${name} PRIVATE
    <grpcpp/grpcpp.h> "$<$<COMPILE_LANGUAGE:CXX>:muster/v1/service.grpc.pb.h>" ${ARGN})
endfunction()
