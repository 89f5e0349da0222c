// A fixed-size array of plain values, not initialised, for data written once per job.
//
// New memory costs a page fault every 4 KiB, a sixth of the time of a run; with large pages it is
// one fault every 2 MiB.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace berthline {

template <typename T>
class LargeArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  LargeArray() = default;
  explicit LargeArray(size_t count) : count_(count) {
    constexpr size_t kLargePage = size_t{2} << 20;
    size_t bytes = count * sizeof(T);
    if (bytes < kLargePage) {
      data_ = static_cast<T*>(std::malloc(bytes + 1));
    } else {
      bytes = (bytes + kLargePage - 1) / kLargePage * kLargePage;
      data_ = static_cast<T*>(std::aligned_alloc(kLargePage, bytes));
#ifdef MADV_HUGEPAGE
      if (data_ != nullptr) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
    }
    if (data_ == nullptr) throw std::bad_alloc();
  }
  LargeArray(LargeArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  LargeArray& operator=(LargeArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  LargeArray(const LargeArray& other) : LargeArray(other.count_) {
    if (count_ > 0) std::memcpy(data_, other.data_, count_ * sizeof(T));
  }
  LargeArray& operator=(const LargeArray& other) {
    if (count_ != other.count_) return *this = LargeArray(other);
    if (count_ > 0) std::memcpy(data_, other.data_, count_ * sizeof(T));
    return *this;
  }
  ~LargeArray() { std::free(data_); }

  // Makes room for more values; the first `used` keep theirs.
  void grow(size_t used, size_t count) {
    LargeArray larger(count);
    std::copy_n(data_, used, larger.data_);
    *this = std::move(larger);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

}  // namespace berthline
