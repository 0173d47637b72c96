// Network namespaces, one for each node, whose links can be cut without a word to either side.
//
// Why this exists: a killed process closes its connections, a cut link does not. What is sent into it is lost, and
// nobody is told; only time, or the other side's next life, says so.
//
// A cut is one-way and silent: the sender's neighbor table names an address that nobody has.
//
// Ownership   The namespaces, until it is destroyed.
// Units       None.
// Threading   One thread.
// Failure     `make` says why not: no root, no iproute2, a kernel without it.
#pragma once

#include <holdfast/platform/abi.hpp>

#include <expected>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::testing::processes {

class network {
 public:
  static std::expected<std::unique_ptr<network>, std::string> make(unsigned nodes);
  ~network();
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  std::string address(unsigned node) const;
  /// What a command line begins with to run there.
  std::vector<std::string> inside(unsigned node) const;
  /// What `from` sends to `to` is lost from here on. Empty, or why it could not be done.
  std::string cut(unsigned from, unsigned to);
  std::string heal(unsigned from, unsigned to);

 private:
  explicit network(unsigned nodes);
  std::string name(unsigned node) const;
  std::string neighbor(unsigned from, unsigned to, const std::string& hardware);
  const std::string prefix_;
  const unsigned nodes_;
};

}  // namespace holdfast::testing::processes
