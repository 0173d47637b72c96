// Feeds the reader of traces, plain and compressed: whatever the bytes are, it answers with a trace or with one sentence
// that names file and line. The first byte says which of the two the rest is.
#include <sim/trace/reader.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace {

// A file that exists in memory alone, under a name that ends as the reader wants it.
class file_in_memory {
 public:
  explicit file_in_memory(bool compressed) : descriptor_(memfd_create("trace", 0)) {
    path_ = "/tmp/holdfast-fuzz-" + std::to_string(getpid()) + (compressed ? ".jsonl.zst" : ".jsonl");
    const std::string target = "/proc/self/fd/" + std::to_string(descriptor_);
    if (descriptor_ < 0 || symlink(target.c_str(), path_.c_str()) != 0) std::abort();
  }
  ~file_in_memory() {
    unlink(path_.c_str());
    close(descriptor_);
  }
  file_in_memory(const file_in_memory&) = delete;
  file_in_memory& operator=(const file_in_memory&) = delete;
  const std::string& path() const { return path_; }
  void fill(const std::uint8_t* data, std::size_t size) const {
    if (ftruncate(descriptor_, 0) != 0 || pwrite(descriptor_, data, size, 0) != static_cast<ssize_t>(size))
      std::abort();
  }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const file_in_memory plain(false), compressed(true);
  if (size == 0) return 0;
  const file_in_memory& file = (data[0] & 1) == 0 ? plain : compressed;
  file.fill(data + 1, size - 1);
  const auto trace = holdfast::sim::read_trace(file.path());
  if (trace) return 0;
  const std::string& sentence = trace.error();
  if (!sentence.starts_with(file.path() + ':') || sentence.find('\n') != sentence.npos) std::abort();
  for (const char c : sentence) {
    if (c < ' ' || c > '~') std::abort();
  }
  return 0;
}
