// Expanding what the build compressed: good streams of every kind of block, broken ones, and the embedded
// files.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "check_error.h"
#include "format/inflate.h"
#include "gpu/kernel_library.h"

namespace {

using namespace phonebit::engine;
using format::inflate;
using Bytes = std::vector<uint8_t>;

std::string bottles() {
  std::string text;
  for (int i = 0; i < 12; ++i) text += std::to_string(i * i % 97) + " bottles, ";
  return text;
}

std::string expand(const Bytes& stream, size_t size) { return inflate(stream.data(), stream.size(), size); }

struct GoodStream {
  const char* name;
  Bytes stream;  // by zlib
  std::string text;
};

std::vector<GoodStream> good_streams() {
  return {
      {"a stored block", {0x01, 0x06, 0x00, 0xf9, 0xff, 0x73, 0x74, 0x6f, 0x72, 0x65, 0x64}, "stored"},
      {"nothing", {0x03, 0x00}, ""},
      {"a block with the fixed codes, and text that repeats itself while it is written",
       {0x4b, 0x4c, 0x4a, 0x4e, 0x44, 0x41, 0xff, 0x27, 0x00, 0x00},
       "abcabcabcabcabcab\xff\x90"},
      {"a block with the fixed codes",
       {0x33, 0x50, 0x48, 0xca, 0x2f, 0x29, 0xc9, 0x49, 0x2d, 0xd6, 0x51, 0x30, 0x44, 0x30, 0x4d, 0x10,
        0x4c, 0x4b, 0x24, 0x05, 0x66, 0x08, 0xb6, 0x91, 0x29, 0x82, 0x6d, 0x8c, 0x24, 0x6e, 0x82, 0xa4,
        0xde, 0x0c, 0xc9, 0x18, 0x0b, 0x24, 0xd3, 0x8d, 0x91, 0x8c, 0x41, 0x52, 0x02, 0x00},
       bottles()},
      {"a block with codes of its own",
       {0x05, 0xc1, 0xb1, 0x0d, 0xc4, 0x30, 0x0c, 0x03, 0xc0, 0x55, 0x38, 0x80, 0x8a, 0x38, 0xf1,
        0x1b, 0xc9, 0x3a, 0x04, 0xd8, 0x11, 0x50, 0x21, 0xee, 0x8f, 0xbf, 0xbb, 0xc0, 0x4e, 0xac,
        0x29, 0x2c, 0xb0, 0x13, 0x6b, 0x0a, 0x1b, 0xec, 0xc4, 0x9a, 0xc2, 0x07, 0x76, 0x62, 0x4d,
        0x61, 0x1d, 0xb0, 0x13, 0x6b, 0x0a, 0xf7, 0x0f, 0xec, 0xc4, 0x9a, 0xc2, 0x73, 0xc0, 0x4e,
        0xac, 0x29, 0xec, 0x0f, 0xec, 0xc4, 0x9a, 0xc2, 0xd9, 0x60, 0x27, 0xd6, 0x14, 0xde, 0x05,
        0x76, 0x62, 0x4d, 0xe1, 0x01, 0x3b, 0xb1, 0xa6, 0x70, 0x6f, 0xb0, 0x13, 0x6b, 0x0a, 0x7f},
       bottles()},
  };
}

TEST_CASE("good streams are expanded") {
  for (const GoodStream& good : good_streams())
    CHECK_MESSAGE(expand(good.stream, good.text.size()) == good.text, good.name, " is expanded");
}

TEST_CASE("every other size is an error") {
  for (const GoodStream& good : good_streams()) {
    check_error(ErrorCode::internal, {"ends before the text", "damaged"}, good.name,
                [&] { expand(good.stream, good.text.size() + 1); });
    if (!good.text.empty())
      check_error(ErrorCode::internal, {"more text than expected"}, good.name,
                  [&] { expand(good.stream, good.text.size() - 1); });
  }
}

TEST_CASE("every cut is an error") {
  for (const GoodStream& good : good_streams()) {
    for (size_t size = 0; size < good.stream.size(); ++size)
      check_error(ErrorCode::internal, {"the stream ends within a block"}, good.name,
                  [&] { inflate(good.stream.data(), size, good.text.size()); });
    Bytes longer = good.stream;
    longer.push_back(0);
    check_error(ErrorCode::internal, {"the last block ends before the stream"}, good.name,
                [&] { expand(longer, good.text.size()); });
  }
}

TEST_CASE("broken streams are errors") {
  struct Case {
    const char* message;
    Bytes stream;
  };
  const Case cases[] = {
      {"a block has the reserved type", {0x07}},
      {"a stored block's size differs from its copy", {0x01, 0x06, 0x00, 0xf9, 0xfe}},
      {"a distance leads before the start", {0x03, 0x02, 0x00}},
      {"a length has a reserved symbol", {0x1b, 0x03}},
      {"a code has too many symbols", {0xf5, 0x00, 0x00}},
      {"a code has more symbols than its lengths allow", {0x05, 0x00, 0x92, 0x04}},
      {"a length repeats the one before the first", {0x05, 0x00, 0x12, 0x00}},
      {"there are more lengths than symbols", {0x05, 0x00, 0x80, 0xe4, 0xff, 0xff}},
      {"bits that are no code", {0x05, 0x00, 0x02, 0xe0, 0xff, 0xff}},
  };
  for (const Case& one : cases)
    check_error(ErrorCode::internal, {one.message}, one.message, [&] { expand(one.stream, 1000); });
}

/// What AddressSanitizer watches: any change gives an error or a text of the right size.
TEST_CASE("changed streams do no harm") {
  std::mt19937 random_number(7);
  const Bytes whole(gpu::embedded_stream, gpu::embedded_stream + gpu::embedded_stream_size);
  for (int i = 0; i < 300; ++i) {
    Bytes stream = whole;
    const size_t changed = random_number() % (i % 2 == 0 ? stream.size() : 80);  // codes are at the beginning
    stream[changed] = static_cast<uint8_t>(stream[changed] ^ 1u << random_number() % 8);
    try {
      const size_t size = gpu::embedded_text_size;
      const std::string text = expand(stream, size);
      CHECK(text.size() == size);
    } catch (const Error& error) {
      CHECK_MESSAGE(error.code() == ErrorCode::internal, "the code of '", error.what(), "'");
    }
  }
}

/// Without comments, which begin with `sign`, and blanks: the embedded files have fewer of both.
std::string code_of(const std::string& text, const std::string& sign) {
  std::string code;
  bool is_comment = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, sign.size(), sign) == 0) is_comment = true;
    if (text[i] == '\n') is_comment = false;
    if (!is_comment && (text[i] == '\n' || std::isspace(static_cast<unsigned char>(text[i])) == 0))
      code += text[i];
  }
  return code;
}

TEST_CASE("embedded files are those of the folder") {
  const std::string folder = PHONEBIT_SOURCE_DIR "/bnn_kernels";
  const gpu::KernelFiles files = gpu::embedded_files();
  CHECK(files.size() > 30);
  CHECK(files.count("tuning.table") == 1);
  for (const auto& file_and_text : files) {
    const std::string &path = file_and_text.first, &text = file_and_text.second;
    std::ifstream file(folder + "/" + path, std::ios::binary);
    CHECK_MESSAGE(file.good(), path, " is in the folder");
    const std::string original{std::istreambuf_iterator<char>(file), {}};
    const char* const sign = path == "tuning.table" ? "#" : "//";
    CHECK_MESSAGE(code_of(text, sign) == code_of(original, sign), path,
                  " has the code of the folder's, on the same lines");
  }
}

}  // namespace
