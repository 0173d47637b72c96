#include <sim/cli/commands.hpp>
#include <sim/cli/inputs.hpp>
#include <sim/cli/output.hpp>

#include <models/model.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

namespace holdfast::sim {

namespace {

void write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw usage_error{path + ": " + std::strerror(errno)};
}

void draw(const std::string& dot_file, const std::string& svg_file) {
  std::string output = "-o" + svg_file;
  std::string input = dot_file;
  char program[] = "dot", form[] = "-Tsvg";
  char* const words[] = {program, form, output.data(), input.data(), nullptr};
  pid_t pid = 0;
  if (const int error = posix_spawnp(&pid, program, nullptr, nullptr, words, environ); error != 0) {
    throw usage_error{"dot, of the package graphviz, cannot be started: " + std::string(std::strerror(error))};
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) throw usage_error{"dot failed on " + dot_file};
}

void make_directory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw usage_error{directory + ": " + error.message()};
}

nlohmann::ordered_json as_json(const models::model& m) {
  nlohmann::ordered_json transitions = nlohmann::ordered_json::array();
  for (const models::transition& t : m.transitions()) {
    transitions.push_back({{"source", t.source}, {"event", t.event}, {"guard", t.guard}, {"target", t.target}});
  }
  return {{"name", m.name()}, {"source", m.source()}, {"states", m.states()}, {"transitions", std::move(transitions)}};
}

void print(const models::model& m) {
  const auto states = m.states();
  const auto transitions = m.transitions();
  std::printf("%s, %s: %zu states, %zu transitions\n", std::string(m.name()).c_str(), std::string(m.source()).c_str(),
              states.size(), transitions.size());
  for (const models::transition& t : transitions) {
    const std::string guard = t.guard.empty() ? "" : " [" + std::string(t.guard) + ']';
    std::printf("  %s -- %s%s --> %s\n", std::string(t.source).c_str(), std::string(t.event).c_str(), guard.c_str(),
                std::string(t.target).c_str());
  }
}

}  // namespace

int models_command(const arguments& given) {
  const std::string dot = given.text("--dot");
  const std::string svg = given.text("--svg");
  const bool json = given.flag("--json");
  if (!dot.empty()) make_directory(dot);
  if (!svg.empty()) make_directory(svg);
  nlohmann::ordered_json document;
  document["models"] = nlohmann::ordered_json::array();
  for (const models::model* m : models::all()) {
    const std::string name(m->name());
    nlohmann::ordered_json entry = as_json(*m);
    if (!dot.empty()) {
      entry["dot"] = dot + '/' + name + ".dot";
      write_file(dot + '/' + name + ".dot", m->dot());
    }
    if (!svg.empty()) {
      const std::string source = svg + '/' + name + ".svg.dot";
      write_file(source, m->dot());
      try {
        draw(source, svg + '/' + name + ".svg");
      } catch (...) {
        std::remove(source.c_str());
        throw;
      }
      std::remove(source.c_str());
      entry["svg"] = svg + '/' + name + ".svg";
    }
    if (!json) {
      if (entry.contains("dot")) std::puts(entry["dot"].get<std::string>().c_str());
      if (entry.contains("svg")) std::puts(entry["svg"].get<std::string>().c_str());
      if (dot.empty() && svg.empty()) print(*m);
    }
    document["models"].push_back(std::move(entry));
  }
  if (json) std::puts(dump(document).c_str());
  return exit_fine;
}

}  // namespace holdfast::sim
