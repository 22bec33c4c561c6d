#include "gpu/binary_store.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include "loader/crc32.h"
#include "loader/file_bytes.h"
#include "system/calls.h"
#include "types/fail.h"

namespace phonebit::engine::gpu {
namespace {

/// Then the key and the binary. In the machine's byte order: the file never leaves it, and another order
/// would not have the magic's version.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t crc;  ///< of what follows this field
  uint64_t key_bytes, binary_bytes;
};
static_assert(sizeof(Header) == 32, "no padding: the checksum runs over it");

constexpr char magic[8] = {'P', 'B', 'C', 'L', 'P', 'R', 'O', 'G'};
constexpr uint32_t version = 1;
/// Of one program. A longer file is not one of ours.
constexpr uint64_t max_bytes = uint64_t{64} << 20;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

uint32_t checksum(const Header& header, const std::string& key, const char* binary) {
  const size_t sizes_at = offsetof(Header, key_bytes);
  uint32_t crc =
      loader::crc32(0, reinterpret_cast<const char*>(&header) + sizes_at, sizeof header - sizes_at);
  crc = loader::crc32(crc, key.data(), key.size());
  return loader::crc32(crc, binary, static_cast<size_t>(header.binary_bytes));
}

uint64_t fnv1a(const std::string& text, uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

bool write_all(int fd, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::write(fd, at, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    bytes -= static_cast<size_t>(done);
  }
  return true;
}

/// With its parents, for the user alone: what is in there runs on the device.
void create_directories(const std::string& path) {
  for (size_t end = 1; end != std::string::npos;) {
    end = path.find('/', end);
    system::make_folder(path.substr(0, end));
    if (end != std::string::npos) ++end;
  }
}

}  // namespace

std::string BinaryStore::path(const std::string& key) const {
  // Two starts of one hash make 128 bits. A collision costs time only: the file holds the key.
  return directory_ + format_text("/%016llx%016llx.clbin",
                                  static_cast<unsigned long long>(fnv1a(key, 0xCBF29CE484222325u)),
                                  static_cast<unsigned long long>(fnv1a(key, 0x9E3779B97F4A7C15u)));
}

StoredBinary BinaryStore::load(const std::string& key) const {
  StoredBinary result;
  if (directory_.empty()) return result;
  const Descriptor descriptor{system::open_to_read(path(key))};
  result.is_rejected = descriptor.fd >= 0;
  if (!result.is_rejected) return result;
  try {
    const auto bytes = loader::FileBytes::of_descriptor(descriptor.fd, 0, 0, {false, max_bytes});
    const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    Header header{};
    if (file.size() < sizeof header) return result;
    std::memcpy(&header, file.data(), sizeof header);
    const std::string_view rest = file.substr(sizeof header);
    if (std::memcmp(header.magic, magic, sizeof magic) != 0 || header.version != version ||
        header.key_bytes != key.size() || header.key_bytes > rest.size() ||
        header.binary_bytes != rest.size() - header.key_bytes || rest.compare(0, key.size(), key) != 0 ||
        header.crc != checksum(header, key, rest.data() + key.size()))
      return result;
    result.is_rejected = false;
    result.binary = rest.substr(key.size());
  } catch (const Error&) {  // what is no file of ours is made anew
  }
  return result;
}

void BinaryStore::store(const std::string& key, const std::string& binary) const {
  if (directory_.empty() || binary.empty()) return;
  Header header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.version = version;
  header.key_bytes = key.size();
  header.binary_bytes = binary.size();
  header.crc = checksum(header, key, binary.data());
  if (sizeof header + key.size() + binary.size() > max_bytes) return;

  create_directories(directory_);
  static std::atomic<unsigned> count{0};
  const std::string target = path(key);
  const std::string temporary = target + format_text(".%ld.%u", system::process_number(), count++);
  bool is_written = false;
  {
    const Descriptor file{system::create(temporary, 0600)};
    if (file.fd < 0) return;
    is_written = write_all(file.fd, &header, sizeof header) && write_all(file.fd, key.data(), key.size()) &&
                 write_all(file.fd, binary.data(), binary.size());
  }
  if (!is_written || system::replace(temporary, target) != 0) system::remove(temporary);
}

int BinaryStore::open_alone(const std::string& path) const {
  if (directory_.empty()) return -1;
  create_directories(directory_);
  return system::open_alone(path);
}

}  // namespace phonebit::engine::gpu
