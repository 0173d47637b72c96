// The program of the tests over real UCX, and of their peers: `--peer` makes it one.
#include <holdfast/platform/abi.hpp>

#include "tests/ucx/harness.hpp"

#include <gtest/gtest.h>

#include <string_view>

// UCX keeps its configuration and its transports' tables until the process ends.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libucs.so\nleak:libuct.so\nleak:libucp.so\nleak:libucm.so\n";
}

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "--peer")
    return holdfast::testing::run_peer(std::vector<std::string>(argv + 2, argv + argc));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
