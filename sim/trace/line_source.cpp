#include <sim/trace/line_source.hpp>

#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <vector>

namespace holdfast::sim {

namespace {

struct close_file {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
struct free_stream {
  void operator()(ZSTD_DStream* stream) const noexcept { ZSTD_freeDStream(stream); }
};

}  // namespace

struct line_source::state {
  std::string path;
  std::unique_ptr<std::FILE, close_file> file;
  std::unique_ptr<ZSTD_DStream, free_stream> stream;  // null: plain
  std::vector<char> compressed;
  ZSTD_inBuffer input{nullptr, 0, 0};
  // True between the frames of a compressed file: only there may it end.
  bool frame_complete = true;
  // The last call filled its output: more may come without further input.
  bool more_inside = false;
  bool at_end = false;
  std::string text;  // what was read and not yet given away begins at `begin`
  std::size_t begin = 0;
  std::size_t searched = 0;  // no line end before here
};

line_source::line_source(std::unique_ptr<state> s) : state_(std::move(s)) {}
line_source::line_source(line_source&&) noexcept = default;
line_source& line_source::operator=(line_source&&) noexcept = default;
line_source::~line_source() = default;

std::expected<line_source, std::string> line_source::open(const std::string& path) {
  auto made = std::make_unique<state>();
  made->path = path;
  made->file.reset(std::fopen(path.c_str(), "rbe"));
  if (!made->file) return std::unexpected(path + ": " + std::strerror(errno));
  struct stat about;
  if (fstat(fileno(made->file.get()), &about) == 0 && S_ISDIR(about.st_mode)) {
    return std::unexpected(path + ": is a directory");
  }
  if (path.ends_with(".zst")) {
    made->stream.reset(ZSTD_createDStream());
    if (!made->stream) return std::unexpected(path + ": no memory to decompress");
    made->compressed.resize(ZSTD_DStreamInSize());
  }
  return line_source(std::move(made));
}

std::string line_source::complain(std::uint64_t line, const std::string& sentence) const {
  return state_->path + ":" + std::to_string(line) + ": " + sentence;
}

// Appends to `text`. False: nothing more comes.
std::expected<bool, std::string> line_source::fill() {
  state& s = *state_;
  if (s.at_end) return false;
  const std::size_t chunk = s.stream ? ZSTD_DStreamOutSize() : std::size_t{256} << 10;
  const std::size_t old = s.text.size();
  s.text.resize(old + chunk);
  std::size_t added = 0;
  while (added == 0 && !s.at_end) {
    if (!s.stream) {
      added = std::fread(s.text.data() + old, 1, chunk, s.file.get());
      if (added == 0) s.at_end = true;
    } else {
      if (s.input.pos == s.input.size && !s.more_inside) {
        s.input = {s.compressed.data(), std::fread(s.compressed.data(), 1, s.compressed.size(), s.file.get()), 0};
      }
      if (s.input.size == 0 && !s.more_inside) {
        s.at_end = true;
        break;
      }
      ZSTD_outBuffer output{s.text.data() + old, chunk, 0};
      const std::size_t answer = ZSTD_decompressStream(s.stream.get(), &output, &s.input);
      if (ZSTD_isError(answer)) {
        return std::unexpected(
            complain(number_ + 1, std::string("the compressed data is damaged: ") + ZSTD_getErrorName(answer)));
      }
      s.frame_complete = answer == 0;
      s.more_inside = answer != 0 && output.pos == chunk;
      added = output.pos;
    }
    if (std::ferror(s.file.get())) return std::unexpected(complain(number_ + 1, std::strerror(errno)));
  }
  s.text.resize(old + added);
  if (s.at_end && !s.frame_complete) {
    return std::unexpected(complain(number_ + 1, "the compressed data breaks off"));
  }
  return added != 0;
}

std::expected<bool, std::string> line_source::next(std::string_view& line) {
  state& s = *state_;
  for (;;) {
    const std::size_t end = s.text.find('\n', s.searched);
    const std::size_t length = (end == std::string::npos ? s.text.size() : end) - s.begin;
    if (length > trace_line_bytes_max) {
      return std::unexpected(complain(number_ + 1, "the line is longer than 64 MiB"));
    }
    if (end != std::string::npos) {
      line = std::string_view(s.text).substr(s.begin, length);
      s.begin = s.searched = end + 1;
      break;
    }
    s.text.erase(0, s.begin);
    s.begin = 0;
    s.searched = s.text.size();
    const auto filled = fill();
    if (!filled) return std::unexpected(filled.error());
    if (!*filled) {
      if (s.text.empty()) return false;
      line = s.text;
      s.begin = s.searched = s.text.size();
      break;
    }
  }
  if (++number_ > trace_lines_max) {
    return std::unexpected(complain(number_, "the file has more than 10000000 lines"));
  }
  return true;
}

}  // namespace holdfast::sim
