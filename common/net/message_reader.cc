#include "common/net/message_reader.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace weir::net {
namespace {

// What is asked for at once: many small messages, or the beginning of a large one, the rest of
// whose payload goes where it belongs.
constexpr size_t kRoom = 64UL << 10;

}  // namespace

std::span<uint8_t> MessageReader::Room() {
  if (in_payload_) return {begun_.payload.data() + filled_, begun_.payload.size() - filled_};
  const size_t needed = kEnvelopeBytes + (sizes_ ? sizes_->header_bytes : 0);
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ + needed > bytes_.size()) {
    std::copy(bytes_.begin() + static_cast<ptrdiff_t>(begin_),
              bytes_.begin() + static_cast<ptrdiff_t>(end_), bytes_.begin());
    end_ -= std::exchange(begin_, 0);
    bytes_.resize(std::max(kRoom, needed));
  }
  return std::span(bytes_).subspan(end_);
}

void MessageReader::Came(size_t bytes) {
  (in_payload_ ? filled_ : end_) += bytes;
}

MessageReader::Taken MessageReader::TakeHeader() {
  const std::string_view came(reinterpret_cast<const char*>(bytes_.data()) + begin_, end_ - begin_);
  if (!sizes_) {
    if (came.size() < kEnvelopeBytes) return Taken::kNothing;
    const auto sizes = DecodeSizes(receives_, came.substr(0, kEnvelopeBytes));
    if (!sizes.ok()) return Taken::kLost;
    sizes_ = *sizes;
  }
  const size_t frame_bytes = kEnvelopeBytes + sizes_->header_bytes;
  if (came.size() < frame_bytes) return Taken::kNothing;
  const std::string_view frame = came.substr(0, frame_bytes);
  if (!DecodeEnvelope(receives_, frame).ok()) return Taken::kLost;
  begun_.header = frame;
  begin_ += frame_bytes;
  begun_.payload = sizes_->payload_bytes > 0 ? Buffer::Aligned(sizes_->payload_bytes) : Buffer();
  filled_ = 0;
  in_payload_ = true;
  return Taken::kMessage;
}

MessageReader::Taken MessageReader::Take(Message* message) {
  if (!in_payload_) {
    const Taken header = TakeHeader();
    if (header != Taken::kMessage) return header;
  }
  const size_t came = std::min(end_ - begin_, begun_.payload.size() - filled_);
  if (came > 0) std::memcpy(begun_.payload.data() + filled_, bytes_.data() + begin_, came);
  begin_ += came;
  filled_ += came;
  if (filled_ < begun_.payload.size()) return Taken::kNothing;
  *message = std::exchange(begun_, {});
  in_payload_ = false;
  sizes_.reset();
  return Taken::kMessage;
}

}  // namespace weir::net
